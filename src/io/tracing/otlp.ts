/** OTLP over HTTP in its JSON form (opentelemetry-proto 1): bodies of spans and of log lines, and answers to them. */
import { SPAN_KINDS, type SpanAttributes, type TraceSpan } from './span.ts';

/** OTLP's `STATUS_CODE_ERROR`. */
const STATUS_ERROR = 2;

/** Names the process that exports (Resource conventions). */
export interface TelemetryResource {
  readonly version: string;
  readonly project: string;
  /** Different for each run. */
  readonly instanceId: string;
}

/** ExportTraceServiceRequest. */
export function tracesBody(spans: readonly TraceSpan[], resource: TelemetryResource): string {
  const scopeSpans = [{ scope: scopeOf(resource), spans: spans.map(spanOf) }];
  return JSON.stringify({ resourceSpans: [{ resource: resourceOf(resource), scopeSpans }] });
}

/** ExportLogsServiceRequest. `lines`: JSON of the log. */
export function logsBody(lines: readonly string[], resource: TelemetryResource): string {
  const scopeLogs = [{ scope: scopeOf(resource), logRecords: lines.map(logRecordOf) }];
  return JSON.stringify({ resourceLogs: [{ resource: resourceOf(resource), scopeLogs }] });
}

export function scopeOf({ version }: TelemetryResource): object {
  return { name: 'gatehouse', version };
}

export function resourceOf({ version, project, instanceId }: TelemetryResource): object {
  const attributes = {
    'service.name': 'gatehouse',
    'service.version': version,
    'service.namespace': project,
    'service.instance.id': instanceId,
    'telemetry.sdk.language': 'nodejs',
  };
  return { attributes: attributesOf(attributes) };
}

/** `SeverityNumber` of the levels of the log. */
const SEVERITIES: Readonly<Record<string, number>> = { info: 9, warn: 13, error: 17, fatal: 21 };

/** The message is the body, other fields are attributes. A `traceparent` becomes the trace and the span of the caller. */
function logRecordOf(line: string): object {
  const { level, time, msg, traceparent, ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const [, traceId, spanId] = typeof traceparent === 'string' ? traceparent.split('-') : [];
  return {
    timeUnixNano: `${Date.parse(String(time))}000000`,
    severityNumber: SEVERITIES[String(level)] ?? 0,
    severityText: String(level),
    body: { stringValue: String(msg) },
    attributes: Object.entries(fields).map(([key, value]) => ({ key, value: anyValueOf(value) })),
    ...(traceId === undefined ? {} : { traceId, spanId }),
  };
}

/** `AnyValue`. What is neither text, number nor truth value is its JSON. */
function anyValueOf(value: unknown): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value !== 'number') return { stringValue: JSON.stringify(value) };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

function spanOf(span: TraceSpan): object {
  const { startMs, endMs = startMs, errorType, parentId, tracestate, link } = span;
  return {
    traceId: span.traceId,
    spanId: span.id,
    ...(parentId === undefined ? {} : { parentSpanId: parentId }),
    ...(tracestate === undefined ? {} : { traceState: tracestate }),
    name: span.name,
    kind: SPAN_KINDS[span.kind],
    startTimeUnixNano: span.nanosecondsOf(startMs),
    endTimeUnixNano: span.nanosecondsOf(endMs),
    attributes: attributesOf(span.attributes),
    ...(link === undefined ? {} : { links: [{ traceId: link.traceId, spanId: link.id }] }),
    status: errorType === undefined ? {} : { code: STATUS_ERROR },
  };
}

/** Numbers are counts and codes: integers, which OTLP writes as decimal strings. */
function attributesOf(attributes: SpanAttributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** Items of an accepted batch that the collector did not store: a field of `partialSuccess`. */
export function rejectedIn(answer: string, field: 'rejectedSpans' | 'rejectedLogRecords'): number {
  try {
    const { partialSuccess }: { partialSuccess?: { readonly [Name in typeof field]?: unknown } } = Object(
      JSON.parse(answer),
    );
    const rejected = Number(partialSuccess?.[field] ?? 0);
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch (error) {
    // Collectors also answer in plain text.
    if (error instanceof SyntaxError) return 0;
    throw error;
  }
}
