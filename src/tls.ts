/** Certificates are judged before anything starts: the HTTP server would only say that it could not be built. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Fault } from './domain/schema.ts';
import { isRecord } from './environment.ts';

/** Faults of `Listen.tls`: a file that cannot be read, a certificate and a key that do not belong together. */
export function checkTls(file: unknown): Fault[] {
  const listen = isRecord(file) ? file['Listen'] : undefined;
  const tls = isRecord(listen) ? listen['tls'] : undefined;
  if (!isRecord(tls)) return [];
  const faults: Fault[] = [];
  const read = (name: 'cert' | 'key') => {
    const path = tls[name];
    if (typeof path !== 'string') return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      faults.push({
        path: `Listen.tls.${name}`,
        message: error instanceof Error ? error.message : 'unreadable',
      });
      return undefined;
    }
  };
  const cert = read('cert');
  const key = read('key');
  if (cert === undefined || key === undefined) return faults;
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    faults.push({ path: 'Listen.tls', message: error instanceof Error ? error.message : 'unusable' });
  }
  return faults;
}
