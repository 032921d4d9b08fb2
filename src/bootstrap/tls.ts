/**
 * Checks certificates before use, because the HTTP server would only report that it cannot start. Reads them again on
 * SIGHUP.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { isRecord } from '../config/source.ts';
import type { Fault } from '../domain/schema.ts';
import { steerToNewest } from '../io/http/listen/listening-sockets.ts';
import type { Server, TlsFiles } from '../io/http/listen/server.ts';
import type { Log } from '../io/observability/log.ts';

/** Faults of `Listen.tls` and `Cluster.tls`: an unreadable file, or a key that does not match the certificate. */
export function checkTls(file: unknown): Fault[] {
  return ['Listen', 'Cluster'].flatMap((name) => {
    const section = isRecord(file) ? file[name] : undefined;
    const tls = isRecord(section) ? section['tls'] : undefined;
    return isRecord(tls) ? tlsFaults(tls, `${name}.tls`) : [];
  });
}

function tlsFaults(tls: Readonly<Record<string, unknown>>, at: string): Fault[] {
  const faults: Fault[] = [];
  const read = (name: 'cert' | 'key' | 'ca') => {
    const path = tls[name];
    if (typeof path !== 'string') return undefined;
    try {
      return readFileSync(path);
    } catch (error) {
      faults.push({ path: `${at}.${name}`, message: error instanceof Error ? error.message : 'unreadable' });
      return undefined;
    }
  };
  const [cert, key, ca] = [read('cert'), read('key'), read('ca')];
  if (cert === undefined || key === undefined) return faults;
  try {
    createSecureContext({ cert, key, ca });
    // OpenSSL compares only keys of the same type.
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
      faults.push({ path: at, message: 'the certificate does not match the key' });
  } catch (error) {
    faults.push({ path: at, message: error instanceof Error ? error.message : 'unusable' });
  }
  return faults;
}

interface RenewalDeps {
  readonly tls: TlsFiles | undefined;
  readonly server: Pick<Server, 'port' | 'renew'>;
  /** Bounds the receive buffers of the new listener's connections. */
  readonly boundBuffers: () => Promise<void>;
  readonly log: Log;
}

/**
 * Reads the certificate again; new connections get a new one. An unusable certificate is logged, and the current one
 * stays. One renewal runs at a time.
 */
export function createRenewal({ tls, server, boundBuffers, log }: RenewalDeps): () => Promise<void> {
  if (tls === undefined) return () => Promise.resolve();
  const read = () => readFileSync(tls.cert, 'latin1') + readFileSync(tls.key, 'latin1');
  let served = read();
  const opened = async () => {
    const hindrance = await steerToNewest(server.port);
    if (hindrance !== undefined) log.write('certificateUnsteered', { detail: hindrance });
    await boundBuffers();
  };
  const renew = async () => {
    const faults = checkTls({ Listen: { tls } });
    if (faults.length > 0) {
      log.write('certificateRefused', { faults });
      return;
    }
    const found = read();
    if (found === served) return;
    await server.renew(opened);
    served = found;
    log.write('certificateRenewed');
  };
  let last = Promise.resolve();
  return () => {
    last = last.then(renew).catch((error: unknown) => log.write('certificateFailed', { err: error }));
    return last;
  };
}
