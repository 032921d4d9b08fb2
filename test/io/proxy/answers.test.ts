/** Answers of modules, byte for byte, and connections that end under a call: what the client of a proxied call gets. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { requestText, sendRaw } from '../../support/http.ts';
import { BEARER, startProxy } from '../../support/module.ts';
import { type RawModule, startRawModule } from '../../support/raw-module.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nfine';

async function gatewayOf(t: Test, module: RawModule) {
  const proxy = closeAfter(t, await startProxy({ moduleUrl: module.url }));
  const { port } = proxy.http;
  const headers = { Authorization: `Bearer ${BEARER}`, Origin: `http://localhost:${port}` };
  return (method: string, body?: string) =>
    sendRaw(port, requestText(method, '/core/v1/thing/make', headers, body));
}

interface Case {
  readonly answer: string;
  readonly status: number;
  readonly body: string | RegExp;
  /** `undefined` for a field that must be missing. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

const FAILED = { status: 502, body: /"code":1008/ };
const CASES: Readonly<Record<string, Case>> = {
  'interim answers before the answer': {
    answer: `HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}`,
    status: 200,
    body: 'fine',
    headers: { link: undefined },
  },
  'a length and chunks': {
    answer:
      'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n',
    ...FAILED,
  },
  'two lengths': {
    answer: 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 9\r\n\r\nfine',
    ...FAILED,
  },
};

for (const [name, { answer, status, body, headers = {} }] of Object.entries(CASES))
  t.test(`answers: ${name}`, async (t) => {
    const module = await startRawModule(t, (_request, socket) => socket.write(answer));
    const ask = await gatewayOf(t, module);
    const answered = await ask('GET');
    t.match(answered, { status, body });
    const named = Object.keys(headers).map((field) => [field, answered.headers[field]]);
    t.same(Object.fromEntries(named), headers);
    t.match(
      answered.headers['access-control-allow-origin'],
      /^http:\/\/localhost:/,
      'a page reads it, whatever it is',
    );
  });

// covers R47
t.test('answers: a kept connection that ends under a call repeats a GET once, and no POST', async (t) => {
  const served: string[] = [];
  // Each connection answers one call and ends under the second.
  const module = await startRawModule(t, (request, socket, connection) => {
    const method = request.slice(0, request.indexOf(' '));
    const isSecond = served.some((call) => call.endsWith(` ${connection}`));
    served.push(`${method} ${connection}`);
    if (isSecond) socket.destroy();
    else socket.write(OK);
  });
  const ask = await gatewayOf(t, module);
  t.equal((await ask('GET')).status, 200);
  t.match(await ask('GET'), { status: 200, body: 'fine' });
  t.same(served, ['GET 0', 'GET 0', 'GET 1'], 'again, on a new connection');
  t.match(await ask('POST', 'pay'), FAILED);
  t.same(served.slice(3), ['POST 1'], 'a module may have done what it was asked to');
});
