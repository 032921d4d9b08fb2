/** OTLP over HTTP in its JSON form (opentelemetry-proto 1, ExportTraceServiceRequest): the body of one batch. */
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

/** UTF-8 text of the body. */
export function otlpBody(
  spans: readonly TraceSpan[],
  { version, project, instanceId }: TelemetryResource,
): string {
  const resource = {
    'service.name': 'gatehouse',
    'service.version': version,
    'service.namespace': project,
    'service.instance.id': instanceId,
    'telemetry.sdk.language': 'nodejs',
  };
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'gatehouse', version }, spans: spans.map(spanOf) }],
      },
    ],
  });
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

/** Spans of an accepted batch that the collector did not store (`partialSuccess`). */
export function rejectedSpans(answer: string): number {
  try {
    const { partialSuccess }: { partialSuccess?: { rejectedSpans?: unknown } } = Object(JSON.parse(answer));
    const rejected = Number(partialSuccess?.rejectedSpans ?? 0);
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch (error) {
    // Collectors also answer in plain text.
    if (error instanceof SyntaxError) return 0;
    throw error;
  }
}
