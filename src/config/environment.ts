/**
 * Environment twins of the configuration: `GATEHOUSE_LISTEN_PORT` is `Listen.port`. The names come from the schema
 * by one rule: path segments in upper case with words parted by underscores.
 */
import { BUILT_IN_MODULES } from '../domain/config/configuration.ts';
import { configurationSchema, moduleSchema } from '../domain/config/file.ts';
import type { Fault } from '../domain/schema.ts';
import { SETTING_NAMES, SETTINGS } from '../domain/settings/settings.ts';
import { variablesOf } from './secrets.ts';
import { isRecord } from './source.ts';
import { unknownMessage } from './suggestion.ts';

const PREFIX = 'GATEHOUSE_';

type Environment = Readonly<Record<string, string | undefined>>;
interface Node {
  type?: string;
  anyOf?: readonly Node[];
  properties?: Record<string, Node>;
}
interface Twin {
  readonly path: readonly string[];
  readonly type: string;
}

/** `Listen.port` → `GATEHOUSE_LISTEN_PORT`, `BaseUrl` → `GATEHOUSE_BASE_URL`. */
export function twinName(path: readonly string[]): string {
  const words = (part: string) =>
    part
      .replace(/([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])/g, '$1$3_$2$4')
      .replaceAll('-', '_')
      .toUpperCase();
  return PREFIX + path.map(words).join('_');
}

/**
 * Every key that holds a single value or a list of texts, runtime settings included, by the name of its twin. `modules`:
 * names of the file beside the built-in ones.
 */
export function twins(modules: readonly string[] = []): ReadonlyMap<string, Twin> {
  const found = new Map<string, Twin>();
  const walk = (node: Node, path: readonly string[]): void => {
    if (node.properties !== undefined) {
      for (const [key, child] of Object.entries(node.properties)) walk(child, [...path, key]);
      return;
    }
    // One value or a list of them: a text with commas is both.
    const type = node.anyOf?.find((one) => one.type === 'array')?.type ?? node.type ?? '';
    if (['string', 'integer', 'number', 'boolean', 'array'].includes(type))
      found.set(twinName(path), { path, type });
  };
  walk(configurationSchema as Node, []);
  for (const name of [...BUILT_IN_MODULES, ...modules]) walk(moduleSchema as Node, ['Modules', name]);
  for (const name of SETTING_NAMES) {
    const path = ['Settings', name];
    found.set(twinName(path), { path, type: SETTINGS[name].type === 'text' ? 'string' : 'integer' });
  }
  return found;
}

/** The file with the environment laid over it. A `GATEHOUSE_` name that is no twin and no secret is a fault. */
export function environmentTwins(file: unknown, environment: Environment, faults: Fault[]): unknown {
  const merged: unknown = structuredClone(file);
  const known = twins(isRecord(file) && isRecord(file['Modules']) ? Object.keys(file['Modules']) : []);
  const secrets = variablesOf(file);
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || value === undefined || secrets.has(name)) continue;
    const twin = known.get(name);
    if (twin === undefined) {
      faults.push({ path: name, message: unknownMessage('environment variable', name, known.keys()) });
      continue;
    }
    if (isRecord(merged)) assign(merged, twin.path, readTwin(twin.type, value));
  }
  return merged;
}

/** A text that is not of the expected type stays unchanged, and the schema reports it. */
function readTwin(type: string, value: string): unknown {
  if (type === 'integer') return /^-?[0-9]+$/.test(value) ? Number(value) : value;
  if (type === 'number') return /^-?[0-9]+(?:\.[0-9]+)?$/.test(value) ? Number(value) : value;
  if (type === 'boolean')
    return value === 'true' || value === '1' ? true : value === 'false' || value === '0' ? false : value;
  if (type === 'array') return value === '' ? [] : value.split(',').map((part) => part.trim());
  return value;
}

function assign(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [head, ...rest] = path;
  if (head === undefined) return;
  if (rest.length === 0) {
    target[head] = value;
    return;
  }
  const child = target[head];
  const next = isRecord(child) ? child : {};
  target[head] = next;
  assign(next, rest, value);
}
