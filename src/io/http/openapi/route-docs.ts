/**
 * What a route says of itself for readers: sentences, examples, and the parts of a call that its handler reads and writes
 * by itself, which the pipeline therefore does not know.
 */
import type { TSchema } from '../../../domain/schema.ts';
import type { RequestFieldName, ResponseFieldName } from './header-fields.ts';

export interface RouteDocs {
  /** What the summary leaves out: rules, order, what happens to what is left out. */
  readonly description: string;
  /**
   * Calls that succeed, by name. Whatever one of them leaves out is made of the examples in the schemas; without any
   * there is one call, made of these alone.
   */
  readonly examples?: Readonly<Record<string, RouteExample>>;
  /** Parameters of the path, where a text is not all there is to say. */
  readonly params?: Readonly<Record<string, TSchema>>;
  /** Fields of the request's head that the handler reads. */
  readonly reads?: Readonly<Partial<Record<RequestFieldName, 'required' | 'optional'>>>;
  /** Fields of the query that the handler reads by itself. */
  readonly query?: TSchema;
  /** The body, where the route takes it raw or as a stream; null: it takes none. */
  readonly body?: BodyDocs | null;
  /** Answers without the envelope by status; they stand in the place of what the definition implies. */
  readonly answers?: Readonly<Record<number, AnswerDocs>>;
  /** Fields of the head of a success. */
  readonly sends?: readonly ResponseFieldName[];
  /** With `auth: 'none'`: the handler reads a bearer by itself, where there is one. */
  readonly bearer?: true;
}

export interface RouteExample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Partial<Record<RequestFieldName, string>>>;
  readonly body?: unknown;
  /** Value of `result`; the whole body where the answer has no envelope. */
  readonly result?: unknown;
}

interface BodyDocs {
  /** Media type. */
  readonly type: string;
  /** Absent: bytes. */
  readonly schema?: TSchema;
  readonly description?: string;
  readonly optional?: true;
}

export interface AnswerDocs {
  readonly description: string;
  /** Media type; absent: no body. */
  readonly type?: string;
  /** Absent: bytes. */
  readonly schema?: TSchema;
}
