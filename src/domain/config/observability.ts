/** Configuration of log lines, and of traces, metrics and lines for a collector. */
import { boolean, integer, number, object, oneOf, optional, record, text } from '../schema.ts';

export const closed = { additionalProperties: false };
export const url = (description: string) =>
  text({
    pattern: '^https?://[^\\s/][^\\s]*$',
    form: 'an http or https address',
    maxLength: 2048,
    description,
  });

export const logSchema = object(
  {
    requests: optional(
      oneOf(
        ['all', 'errors', 'off'],
        'Which log lines "request" and "webhook attempt" are written. "errors": requests that were refused, failed or left without an answer, and attempts that did not deliver.',
      ),
    ),
    sample: optional(
      record(text(), number({ minimum: 0, maximum: 1 }), {
        description:
          'By route, as the line names it: the part of its requests that leave a line when they succeed. Refused and failed ones always do.',
      }),
    ),
    format: optional(
      oneOf(['json', 'pretty'], 'One JSON object a line, or a line for people with the same fields.'),
    ),
    level: optional(
      oneOf(
        ['info', 'warn', 'error'],
        'Lines below this level are not written, of the process and of traffic.',
      ),
    ),
  },
  closed,
);

export const telemetrySchema = object(
  {
    url: url(
      'Collector that takes OTLP over HTTP with JSON; `/v1/traces`, `/v1/metrics` and `/v1/logs` are added to its path.',
    ),
    headers: optional(
      record(text(), text({ maxLength: 4096, writeOnly: true }), {
        description: 'Headers of every export, such as a token; best as env:NAME or file:/PATH.',
      }),
    ),
    sampleRatio: optional(
      number({
        minimum: 0,
        maximum: 1,
        description:
          'Part of the requests that is traced. Above 0, a `traceparent` of TrustedProxies decides by its own flag.',
      }),
    ),
    metricsSeconds: optional(
      integer({
        minimum: 0,
        maximum: 3600,
        description: 'All metrics are sent so often; 0: never. The internal listener has them either way.',
      }),
    ),
    logs: optional(boolean({ description: 'Lines of the log are sent too, as they are written.' })),
  },
  { ...closed, description: 'Traces, metrics and log lines for an OpenTelemetry collector.' },
);
