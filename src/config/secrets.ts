/**
 * Values that stand outside the configuration file: `"env:NAME"` is a variable, `"file:/PATH"` the content of a file.
 * Orchestrators hand secrets over in both ways.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { Fault } from '../domain/schema.ts';
import { isRecord } from './source.ts';

const VARIABLE_PREFIX = 'env:';
/** `file://…` is a URI, which some keys hold, and `file: …` a sentence. */
const FILE_FORM = /^file:(?!\/\/|\s|$)/;
const FILE_BYTES_MAX = 64 * 1024;
const WRITABLE_BY_OTHERS = 0o002;
/** Forms of other programs, which read the secret themselves and leave the name to those that do not. */
const FOREIGN_FORMS = ['vault', 'secret', 'aws', 'k8s', 'docker', 'file', 'env'];

type Environment = Readonly<Record<string, string | undefined>>;

/** Names of the variables that values of the file name. */
export function variablesOf(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (typeof value === 'string' && value.startsWith(VARIABLE_PREFIX))
    found.add(value.slice(VARIABLE_PREFIX.length));
  else if (typeof value === 'object' && value !== null)
    for (const part of Object.values(value)) variablesOf(part, found);
  return found;
}

/** Puts variables and contents in place of their names. One that cannot be had is a fault at the path of its key. */
export function resolveSecrets(
  value: unknown,
  environment: Environment,
  faults: Fault[],
  path = '',
): unknown {
  if (typeof value === 'string') {
    const result = resolveText(value, environment);
    if ('fault' in result) faults.push({ path, message: result.fault });
    return 'fault' in result ? '' : result.text;
  }
  const below = (key: string) => (path === '' ? key : `${path}.${key}`);
  if (Array.isArray(value))
    return value.map((part, at) => resolveSecrets(part, environment, faults, below(String(at))));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [key, resolveSecrets(part, environment, faults, below(key))]),
  );
}

/** A secret that stayed a name would be taken as the secret itself. Undefined: it is none. */
export function foreignFault(value: string): string | undefined {
  const form = FOREIGN_FORMS.find((each) => value.startsWith(`${each}:`));
  return form === undefined
    ? undefined
    : `begins with ${form}:, which the gateway does not read: env:NAME and file:/PATH are read`;
}

type Resolved = { readonly text: string } | { readonly fault: string };

function resolveText(value: string, environment: Environment): Resolved {
  if (value.startsWith(VARIABLE_PREFIX)) {
    const name = value.slice(VARIABLE_PREFIX.length);
    const text = environment[name];
    return text === undefined ? { fault: `environment variable ${name} is not set` } : { text };
  }
  if (!FILE_FORM.test(value)) return { text: value };
  const path = value.slice('file:'.length);
  if (!path.startsWith('/')) return { fault: 'file: needs an absolute path' };
  try {
    return readSecret(path);
  } catch (error) {
    // The system's message names the path, never the content.
    return { fault: error instanceof Error ? error.message : `${path} cannot be read` };
  }
}

/** Links are followed: Kubernetes mounts secrets as links. One newline at the end is cut. Throws the system's errors. */
function readSecret(path: string): Resolved {
  // A pipe without a writer would hold the start.
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return { fault: `${path} is no file` };
    if ((stat.mode & WRITABLE_BY_OTHERS) !== 0) return { fault: `${path} may be written by everyone` };
    const bytes = Buffer.alloc(FILE_BYTES_MAX + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read)
      read = readSync(fd, bytes, length, bytes.length - length, null);
    if (length > FILE_BYTES_MAX) return { fault: `${path} is longer than ${FILE_BYTES_MAX} bytes` };
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(0, length));
    const cut = text.replace(/\r?\n$/, '');
    return cut === '' ? { fault: `${path} is empty` } : { text: cut };
  } catch (error) {
    if (error instanceof TypeError) return { fault: `${path} is not UTF-8 text` };
    throw error;
  } finally {
    closeSync(fd);
  }
}
