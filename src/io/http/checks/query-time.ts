/** Times in requests: ISO 8601 with a zone. */
import { GatewayError } from '../../../domain/errors.ts';
import { text } from '../../../domain/schema.ts';

const TIME =
  '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$';

export function timeText(description: string) {
  const form = 'a time with its zone, as 2026-01-31T12:00:00Z';
  return text({ pattern: TIME, form, maxLength: 40, description, examples: ['2026-01-31T12:00:00Z'] });
}

/** Milliseconds since the Unix epoch. Throws `InvalidInput` that names the field. */
export function readTime(value: string, field: string): number {
  const timeMs = Date.parse(value);
  if (!Number.isFinite(timeMs))
    throw new GatewayError('InvalidInput', `${field}: expected a time (ISO 8601)`);
  return timeMs;
}
