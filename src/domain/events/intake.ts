/**
 * Events as modules send them, pushed or polled: their checks, identity and forwarded form. `data` is cut out of the
 * text, because parsing would change amounts (spec 2.6: exact decimals); only fields for routing and filters are
 * parsed.
 */
import { hash } from 'node:crypto';
import { GatewayError } from '../errors.ts';
import { parseId } from '../ids.ts';
import { itemSpans, memberSpan, memberSpans, type Span } from '../raw-json.ts';
import { OWN_MODULE, type StoredEvent } from './events.ts';

/** Bytes of one event's `data`. */
export const EVENT_DATA_MAX_BYTES = 64 * 1024;
/** Characters of the JSON of one event: its data escaped, and all else. A longer one is refused unread. */
const EVENT_MAX_CHARACTERS = 8 * EVENT_DATA_MAX_BYTES;
const ID_MAX_CHARACTERS = 256;
/** An event type leaves as a line of the event stream: no blanks, no line breaks. */
const TYPE_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$/;
/** Names with a meaning of their own in an event stream. */
const TYPES_RESERVED = new Set(['reset', 'bye', 'error', 'open']);
const INTEGER_PATTERN = /^(?:0|[1-9][0-9]*)$/;
const CURRENCY_MAX_CHARACTERS = 64;
const NET_TYPE_MAX = 255;

/** Members that are read; any others are only passed over. */
const EVENT_KEYS = new Set(['module', 'tick', 'type', 'crmId', 'netType', 'data', 'id']);
const DATA_KEYS = new Set(['id', 'appId', 'currency', 'netType']);

/** One event that passed the checks. */
export interface IncomingEvent extends Omit<StoredEvent, 'sequence' | 'acceptedMs'> {
  /** 128 bits of SHA-256 over (module, tick, type, crmId, id or data), base64url. */
  readonly identity: string;
}

/**
 * Reads the events of a text that is known to be JSON, one at a time: the object `{"events": […]}` that begins at `from`.
 * `ofModule` judges the module that an event names and answers with its name. Throws `InvalidInput` or `BodyTooLarge` that
 * names the event and the field.
 */
export function* readEvents(
  text: string,
  eventsMax: number,
  ofModule: (name: unknown, path: string) => string,
  from = 0,
): Generator<IncomingEvent> {
  const list = memberSpan(text, 'events', from);
  if (list === undefined || text.charAt(list.start) !== '[') throw invalid('events', 'an array is required');
  const spans = itemSpans(text, list.start);
  if (spans.length > eventsMax) throw invalid('events', `at most ${eventsMax}`);
  for (const [index, span] of spans.entries()) yield readEvent(text, span, `events.${index}`, ofModule);
}

function readEvent(
  text: string,
  span: Span,
  path: string,
  ofModule: (name: unknown, path: string) => string,
): IncomingEvent {
  if (text.charAt(span.start) !== '{') throw invalid(path, 'an object is required');
  if (span.end - span.start > EVENT_MAX_CHARACTERS)
    throw new GatewayError('BodyTooLarge', `${path}: at most ${EVENT_MAX_CHARACTERS} characters`);
  const event = new RawObject(text, span, EVENT_KEYS);
  const module = ofModule(event.value('module'), `${path}.module`);
  const tick = event.id('tick');
  if (tick === undefined) throw invalid(`${path}.tick`, 'an integer from 0 to 2^63 - 1 is required');
  const type = event.value('type');
  if (typeof type !== 'string' || !TYPE_PATTERN.test(type))
    throw invalid(`${path}.type`, 'a name of 1 to 100 letters, digits and . _ : / - is required');
  if (TYPES_RESERVED.has(type))
    throw invalid(`${path}.type`, 'this name is taken by the event stream itself');
  const userId = event.has('crmId') ? event.id('crmId') : undefined;
  if (userId === undefined && event.has('crmId')) throw invalid(`${path}.crmId`, 'a decimal user id');
  const netType = event.has('netType') ? byteOf(event.value('netType')) : undefined;
  if (netType === undefined && event.has('netType'))
    throw invalid(`${path}.netType`, `an integer from 0 to ${NET_TYPE_MAX}`);
  const dataSpan = event.span('data');
  if (dataSpan === undefined || text.charAt(dataSpan.start) !== '{')
    throw invalid(`${path}.data`, 'an object is required');
  const raw = text.slice(dataSpan.start, dataSpan.end);
  if (Buffer.byteLength(raw) > EVENT_DATA_MAX_BYTES)
    throw new GatewayError('BodyTooLarge', `${path}.data: at most ${EVENT_DATA_MAX_BYTES} bytes`);
  const data = new RawObject(text, dataSpan, DATA_KEYS);
  const own = event.has('id') ? event.label('id') : undefined;
  if (own === undefined && event.has('id'))
    throw invalid(`${path}.id`, `a text or number of at most ${ID_MAX_CHARACTERS} characters`);
  const id = own ?? data.label('id');
  const known = id === undefined ? ['data', hash('sha256', raw, 'base64url')] : ['id', id];
  const identity = hash('sha256', JSON.stringify([module, tick, type, userId ?? null, ...known]), 'buffer');
  return {
    module,
    tick,
    type,
    userId,
    appId: data.id('appId'),
    currency: shortText(data.value('currency')),
    netType: netType ?? byteOf(data.value('netType')),
    jsonText: jsonTextOf(module, tick, type, raw),
    identity: identity.subarray(0, 16).toString('base64url'),
  };
}

/** The form of spec 2.6: the tick a string, routing fields omitted, `data` unchanged. */
export function jsonTextOf(module: string, tick: string, type: string, data: string): string {
  return `{"module":${JSON.stringify(module)},"tick":"${tick}","type":${JSON.stringify(type)},"data":${data}}`;
}

/** The check of a module's name in `readEvents`, where events of several modules are allowed. */
export function requireModule(name: unknown, path: string, isKnown: (name: string) => boolean): string {
  if (typeof name !== 'string' || name === OWN_MODULE || !isKnown(name))
    throw invalid(path, 'no such module');
  return name;
}

/** An object within a JSON text: the positions of its members, each parsed on demand. */
class RawObject {
  readonly #text: string;
  readonly #members: ReadonlyMap<string, Span>;

  constructor(text: string, span: Span, wanted: ReadonlySet<string>) {
    this.#text = text;
    this.#members = memberSpans(text, span.start, wanted);
  }

  span(key: string): Span | undefined {
    return this.#members.get(key);
  }

  /** The text of the member; undefined where there is none. */
  literal(key: string): string | undefined {
    const span = this.span(key);
    return span === undefined ? undefined : this.#text.slice(span.start, span.end);
  }

  /** There is such a member, and it is not null. */
  has(key: string): boolean {
    return (this.literal(key) ?? 'null') !== 'null';
  }

  /** A text or a number; undefined for anything else. */
  value(key: string): unknown {
    const literal = this.literal(key);
    return literal === undefined || /^[[{]/.test(literal) ? undefined : JSON.parse(literal);
  }

  /** An int64 from its digits, as a text or as a number of any size. */
  id(key: string): string | undefined {
    const literal = this.literal(key);
    if (literal === undefined) return undefined;
    return parseId(INTEGER_PATTERN.test(literal) ? literal : this.value(key));
  }

  /** A text or a number by which something is known: a number by its digits. */
  label(key: string): string | undefined {
    const literal = this.literal(key);
    const value = this.value(key);
    const label = typeof value === 'number' ? literal : value;
    if (typeof label !== 'string' || label === '' || label.length > ID_MAX_CHARACTERS) return undefined;
    return label;
  }
}

function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value.length <= CURRENCY_MAX_CHARACTERS ? value : undefined;
}

function byteOf(value: unknown): number | undefined {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= NET_TYPE_MAX;
  return fits ? value : undefined;
}

function invalid(path: string, message: string): GatewayError {
  return new GatewayError('InvalidInput', `${path}: ${message}`);
}
