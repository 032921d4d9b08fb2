/** Documentation of a route for OpenAPI: text, examples, and the fields that its handler reads and writes itself. */
import type { TSchema } from '../../../domain/schema.ts';
import type { RequestFieldName, ResponseFieldName } from './header-fields.ts';

export interface RouteDocs {
  /** Calls that succeed, by name, completed from the examples of the schemas. Absent: one call made only of these. */
  readonly examples?: Readonly<Record<string, RouteExample>>;
  /** Schemas of path parameters that are more than a text. */
  readonly params?: Readonly<Record<string, TSchema>>;
  /** Fields of the request's head that the handler reads. */
  readonly reads?: Readonly<Partial<Record<RequestFieldName, 'required' | 'optional'>>>;
  /** Fields of the query that the handler reads itself. */
  readonly query?: TSchema;
  /** The body, if the route takes it raw or as a stream; null: none. */
  readonly body?: BodyDocs | null;
  /** Answers without the envelope by status; they replace those that the definition implies. */
  readonly answers?: Readonly<Record<number, AnswerDocs>>;
  /** The body of every error, where it is not the envelope. */
  readonly failure?: TSchema;
  /** Fields of the head of a success. */
  readonly sends?: readonly ResponseFieldName[];
  /** With `auth: 'none'`: the handler itself reads a bearer if there is one. */
  readonly bearer?: true;
}

export interface RouteExample {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Partial<Record<RequestFieldName, string>>>;
  readonly body?: unknown;
  /** Value of `result`; the whole body if the answer has no envelope. */
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
  /** Events, where some calls are answered by an event stream instead. */
  readonly stream?: TSchema;
}
