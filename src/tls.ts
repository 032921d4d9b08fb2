/** Certificates are judged before anything starts: the HTTP server would only say that it could not be built. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Configuration } from './domain/configuration.ts';
import type { Fault } from './domain/schema.ts';

/** Faults of `Listen.tls`: a file that cannot be read, a certificate and a key that do not belong together. */
export function checkTls({ listen: { tls } }: Configuration): readonly Fault[] {
  if (tls === undefined) return [];
  const faults: Fault[] = [];
  const read = (path: 'cert' | 'key') => {
    try {
      return readFileSync(tls[path]);
    } catch (error) {
      faults.push({
        path: `Listen.tls.${path}`,
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
