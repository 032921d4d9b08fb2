/** Floors of small answers: a uWebSockets.js handler that is empty, and one that does equal work. */
import { startServer } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { type Bench, rawRequest } from '../scenario.ts';
import { RawConnection } from './transfers/raw-connection.ts';

export const EMPTY = 'empty uWS handler';
export const EQUAL_WORK = 'uWS handler, equal work';

/** An empty handler that gets the same requests. With an argument it answers that text. */
export async function floor(
  bench: Bench,
  name: string,
  sample: string,
  args: readonly string[],
): Promise<Subject> {
  const server = await startServer('empty', args);
  bench.onTeardown(() => server.stop());
  const requests = [sample.replace(/\r\nHost: [^\r]*/, `\r\nHost: ${new URL(server.url).host}`)];
  return bench.subject(name, [server.pid], () => ({ url: server.url, requests, expect: '{' }));
}

/** Answers as the gateway at `url` answers this path with this cookie. */
export async function equalWork(bench: Bench, url: string, path: string, cookie: string): Promise<Subject> {
  const connection = await RawConnection.open(url);
  const { status, head, text } = await connection.ask('GET', path, { Cookie: cookie });
  connection.close();
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  const server = await startServer('equal-work', [head, text]);
  bench.onTeardown(() => server.stop());
  const requests = [rawRequest('GET', server.url + path, { Cookie: cookie })];
  return bench.subject(EQUAL_WORK, [server.pid], () => ({ url: server.url, requests, expect: '"result"' }));
}
