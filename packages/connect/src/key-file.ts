/** The file of an agent's key: made at the first start, readable by its owner alone. */
import { linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { type AgentKey, createKeyPair, type KeyPair, keyOf } from './agent-key.ts';

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

/** A key that cannot be used; the message says what to do. */
export class KeyFileError extends Error {}

/** One file for each gateway: a key is registered at one of them. */
export function defaultKeyFile(
  origin: string,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const folder = environment['XDG_CONFIG_HOME'] || join(homedir(), '.config');
  const name = new URL(origin).host.replaceAll(/[^A-Za-z0-9.-]/g, '_');
  return join(folder, 'gatehouse-connect', `${name}.json`);
}

export function loadKey(file: string): { key: AgentKey; isNew: boolean } {
  const stored = readText(file);
  if (stored !== undefined) return { key: parse(file, stored), isNew: false };
  const pair = createKeyPair();
  const isNew = store(file, pair);
  return { key: isNew ? keyOf(pair.secretKey) : parse(file, readText(file) ?? ''), isNew };
}

function readText(file: string): string | undefined {
  try {
    const { mode } = statSync(file);
    // Windows has no such bits: every file shows them as set.
    if (process.platform !== 'win32' && (mode & OTHERS) !== 0)
      throw new KeyFileError(`others may read the key: run "chmod 600 ${file}"`);
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function parse(file: string, text: string): AgentKey {
  try {
    const key = keyOf((JSON.parse(text) as KeyPair).secretKey);
    return key;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KeyFileError(`${file} holds no key (${reason}): mend it, or move it away to get a new key`);
  }
}

/** False when another process was faster: of two that start at once, one makes the key and both use it. */
function store(file: string, pair: KeyPair): boolean {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(pair)}\n`, { mode: OWNER_ONLY });
  try {
    // A link is made whole or not at all, and never over a file that exists.
    linkSync(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft);
  }
}
