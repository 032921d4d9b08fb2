/** An OTLP receiver on loopback: keeps the spans of every batch that it accepts. */
import http from 'node:http';
import { listenOnLoopback } from '../../kit/http.ts';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: an error. */
  readonly status: { readonly code?: number };
}

export interface ReceivedBatch {
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly resource: Readonly<Record<string, string>>;
  readonly spans: readonly ReceivedSpan[];
}

export interface Collector {
  readonly url: string;
  readonly batches: ReceivedBatch[];
  /** Accepted bodies of metrics and log lines, with their path. */
  readonly others: { readonly path: string; readonly body: unknown }[];
  /** All spans of the first trace that has a span `fits` is true of, once it has arrived with its batch. */
  trace(fits: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan[]>;
  close(): Promise<void>;
}

interface OtlpAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}
interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ReceivedSpan, 'attributes'> & {
        readonly attributes: readonly OtlpAttribute[];
      })[];
    }[];
  }[];
}

function readBatch(path: string, headers: http.IncomingHttpHeaders, text: string): ReceivedBatch {
  const { resourceSpans } = JSON.parse(text) as OtlpBody;
  return {
    path,
    headers,
    resource: valuesOf(resourceSpans.flatMap(({ resource }) => resource.attributes)),
    spans: resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) =>
        spans.map((span) => ({ ...span, attributes: valuesOf(span.attributes) })),
      ),
    ),
  };
}

function valuesOf(attributes: readonly OtlpAttribute[]): Record<string, string> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? '']),
  );
}

/** `statusOf`: of the answer to the batch of that number, counted from 1; 200 unless given. */
export async function startCollector(statusOf: (batch: number) => number = () => 200): Promise<Collector> {
  const batches: ReceivedBatch[] = [];
  const others: Collector['others'] = [];
  let asked = 0;
  let arrived = () => {};
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      asked += 1;
      const status = statusOf(asked);
      const text = Buffer.concat(chunks).toString();
      const path = request.url ?? '';
      if (status === 200 && path.endsWith('/v1/traces')) batches.push(readBatch(path, request.headers, text));
      else if (status === 200) others.push({ path, body: JSON.parse(text) });
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}');
      arrived();
    });
  });
  const { url } = await listenOnLoopback(server);
  return {
    url,
    batches,
    others,
    async trace(fits) {
      for (;;) {
        const all = batches.flatMap(({ spans }) => spans);
        const found = all.find(fits);
        if (found !== undefined) return all.filter(({ traceId }) => traceId === found.traceId);
        await new Promise<void>((resolve) => {
          arrived = resolve;
        });
      }
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The tree of a trace: a line for each span, indented below its parent, in the order of their starts. */
export function treeOf(spans: readonly ReceivedSpan[]): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const below = (parent: string | undefined, depth: number): string[] =>
    spans
      .filter(({ parentSpanId }) =>
        parent === undefined ? !ids.has(parentSpanId ?? '') : parentSpanId === parent,
      )
      .sort((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)))
      .flatMap(({ name, spanId }) => [`${'  '.repeat(depth)}${name}`, ...below(spanId, depth + 1)]);
  return below(undefined, 0);
}
