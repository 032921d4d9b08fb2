/**
 * Spans of one sampled request (OpenTelemetry data model, W3C Trace Context). They exist only for sampled requests; every
 * other request has `undefined` in their place.
 */
import { randomBytes } from 'node:crypto';

/** Spans of one request that are exported; a batch of tool calls may have more. */
export const REQUEST_SPANS_MAX = 256;
/** Characters of an attribute's value; longer ones are cut. */
const VALUE_CHARACTERS_MAX = 256;
const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;

/** OTLP's `SpanKind`. */
export const SPAN_KINDS = { internal: 1, server: 2, client: 3 } as const;
type SpanKind = keyof typeof SPAN_KINDS;

type AttributeValue = string | number;
export type SpanAttributes = Readonly<Record<string, AttributeValue | undefined>>;

export interface SpanSink {
  add(span: TraceSpan): void;
  /** A span beyond `REQUEST_SPANS_MAX` of its request. */
  dropped(): void;
}

/** The span of the caller, well formed. */
export interface RemoteParent {
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
}

/** Options that all spans of a request share. */
interface TraceOptions extends RemoteParent {
  readonly sink: SpanSink;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Unix milliseconds at which `elapsed` was 0. */
  readonly originMs: number;
}

class Trace {
  readonly id: string;
  readonly options: TraceOptions;
  /** Spans so far; traces of one request share it. */
  readonly opened: { spans: number };

  constructor(options: TraceOptions, opened = { spans: 0 }) {
    this.options = options;
    this.opened = opened;
    this.id = traceIdOf(options.traceparent) ?? randomBytes(TRACE_ID_BYTES).toString('hex');
  }
}

export class TraceSpan {
  readonly id = randomBytes(SPAN_ID_BYTES).toString('hex');
  readonly parentId: string | undefined;
  readonly kind: SpanKind;
  /** The span without a parent in this process. */
  readonly root: TraceSpan;
  readonly startMs: number;
  readonly attributes: Record<string, AttributeValue> = {};
  name: string;
  endMs: number | undefined;
  /** A span of another trace that this one belongs to. */
  link: TraceSpan | undefined;
  /** `error.type` of the conventions; undefined for a success. */
  errorType: string | undefined;
  readonly #trace: Trace;
  readonly #isKept: boolean;

  constructor(trace: Trace, parent: TraceSpan | undefined, name: string, kind: SpanKind, startMs?: number) {
    this.#trace = trace;
    this.root = parent?.root ?? this;
    this.parentId = parent === undefined ? spanIdOf(trace.options.traceparent) : parent.id;
    this.name = name;
    this.kind = kind;
    this.startMs = startMs ?? trace.options.elapsed();
    trace.opened.spans += 1;
    this.#isKept = trace.opened.spans <= REQUEST_SPANS_MAX;
  }

  child(name: string, kind: SpanKind = 'internal', startMs?: number): TraceSpan {
    return new TraceSpan(this.#trace, this, name, kind, startMs);
  }

  /** A span whose parent is one of the caller, in the caller's trace. A link leads from it to this one. */
  linked(parent: RemoteParent, name: string, kind: SpanKind): TraceSpan {
    const { options, opened } = this.#trace;
    const span = new TraceSpan(new Trace({ ...options, ...parent }, opened), undefined, name, kind);
    span.link = this;
    return span;
  }

  set(attributes: SpanAttributes): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === undefined) continue;
      this.attributes[name] = typeof value === 'string' ? value.slice(0, VALUE_CHARACTERS_MAX) : value;
    }
  }

  /** Ends the span once; a later call changes nothing. */
  end(errorType?: string): void {
    if (this.endMs !== undefined) return;
    const { elapsed, sink } = this.#trace.options;
    this.endMs = elapsed();
    this.errorType = errorType;
    if (errorType !== undefined) this.attributes['error.type'] = errorType;
    if (this.#isKept) sink.add(this);
    else sink.dropped();
  }

  get traceId(): string {
    return this.#trace.id;
  }

  get tracestate(): string | undefined {
    return this.#trace.options.tracestate;
  }

  /** Header of a call that this span is the parent of. */
  get traceparent(): string {
    return `00-${this.#trace.id}-${this.id}-01`;
  }

  /** Unix nanoseconds as decimal digits, to the microsecond. `atMs`: on the clock of `startMs`. */
  nanosecondsOf(atMs: number): string {
    return `${Math.round((this.#trace.options.originMs + atMs) * 1_000)}000`;
  }
}

/** The span of a whole request, or of work that no request asked for. */
export function openTrace(
  options: TraceOptions,
  startMs: number,
  name = 'request',
  kind: SpanKind = 'server',
): TraceSpan {
  return new TraceSpan(new Trace(options), undefined, name, kind, startMs);
}

/** `00-<32 digits>-<16 digits>-<2 digits>` (W3C Trace Context 3.2). */
function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceparent?.split('-')[1];
}

function spanIdOf(traceparent: string | undefined): string | undefined {
  return traceparent?.split('-')[2];
}

/** Does the caller record its own span? */
export function isSampled(traceparent: string): boolean {
  return (Number.parseInt(traceparent.slice(-2), 16) & 1) === 1;
}
