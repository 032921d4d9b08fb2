/** Names of a client's fields that modules receive: against the table, the page, and real modules of three languages. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { sendHttp } from '../../../kit/http.ts';
import { isForwardable, isGatewayHeader, NAMES_KEPT_BACK } from '../../../src/io/http-client/header-names.ts';
import { forwardedHeaders } from '../../../src/io/http-client/headers.ts';
import { startProxy } from '../../support/module.ts';
import { lacking } from '../../support/programs/tools.ts';

t.setTimeout(120_000);

const GATEWAY_NAMES = [
  ...['X-Crm', 'X-Scopes', 'X-KeyType', 'X-Project', 'X-MCP-App-Id', 'X-User-Id', 'X-Request-Id'],
  ...['X-Module-Key', 'X-Forwarded-For', 'X-Device-Guid', 'traceparent', 'tracestate'],
];
/** RFC 9110 5.6.2: all characters of a token but letters, digits and `-`. */
const OTHER_CHARACTERS = [..."!#$%&'*+.^_`|~"];
/** Fields of one request; the gateway takes 100. */
const FIELDS = 40;
const TABLE = NAMES_KEPT_BACK.flatMap(({ names }) => names);
/** A name for each row of the table. */
const TABLE_NAMES = TABLE.map((name) => name.replace(/^\*/, 'X-Test-').replace(/\*$/, 'Test'));

// covers R19 S28
t.test(
  'header names: no name of the table and of the gateway is forwarded, in no case of its letters',
  (t) => {
    const all = [...TABLE_NAMES, ...GATEWAY_NAMES];
    const passed = all.flatMap((name) =>
      [name, name.toLowerCase(), name.toUpperCase()].flatMap((each) =>
        Object.keys(forwardedHeaders([[each, 'forged']])),
      ),
    );
    t.same(passed, []);
    t.same(
      GATEWAY_NAMES.filter((name) => !isGatewayHeader(name)),
      [],
    );
    for (const name of ['accept', 'content-type', 'range', 'x-crm-note', 'x-trace', 'user-agent', 'if-match'])
      t.ok(isForwardable(name), name);
    t.end();
  },
);

// covers S28
t.test(
  'header names: a name with another character than letters, digits and - is dropped and counted',
  (t) => {
    for (const character of OTHER_CHARACTERS) {
      const dropped = { count: 0 };
      const fields = ['X-Crm', 'Plain-Name'].map((name) => [name.replace('-', character), 'forged'] as const);
      t.same(forwardedHeaders([...fields, ['X-Plain', 'kept']], dropped), { 'x-plain': 'kept' }, character);
      t.equal(dropped.count, 2, character);
    }
    t.end();
  },
);

// covers S29
t.test('header names: docs/modules.md shows the table', (t) => {
  const rows = NAMES_KEPT_BACK.map(
    ({ why, names }) => `| ${why} | ${names.map((name) => `\`${name}\``).join(', ')} |`,
  );
  const table = ['| Why | Names |', '|---|---|', ...rows].join('\n');
  t.ok(readFileSync('docs/modules.md', 'utf8').includes(table), `the page has no such table:\n${table}`);
  t.same([...new Set(TABLE.map((name) => name.toLowerCase()))].length, TABLE.length, 'each name once');
  t.end();
});

/** Modules that answer with every field that they see, by its name in that language. */
const PHP = '<?php header("Content-Type: application/json"); echo json_encode($_SERVER);';
const PYTHON = `
import json
from wsgiref.simple_server import make_server, WSGIRequestHandler
class Silent(WSGIRequestHandler):
    def log_message(self, *args): pass
def module(environ, start):
    start('200 OK', [('Content-Type', 'application/json')])
    return [json.dumps({k: v for k, v in environ.items() if isinstance(v, str)}).encode()]
server = make_server('127.0.0.1', 0, module, handler_class=Silent)
print(f'http://127.0.0.1:{server.server_port}', flush=True)
server.serve_forever()
`;
const NODE = `
const server = require('node:http').createServer((request, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(request.headers));
});
server.listen(0, '127.0.0.1', () => process.stdout.write('http://127.0.0.1:' + server.address().port + '\\n'));
`;

interface RealModule {
  /** Name in .ci/tools; Node is there. */
  readonly tool?: string;
  readonly start: (t: Test) => ChildProcess;
  /** The name of X-Plain there. */
  readonly plain: string;
}

const MODULES: Readonly<Record<string, RealModule>> = {
  "PHP's built-in server": {
    tool: 'PHP',
    start: (t) => spawn('php', ['-S', '127.0.0.1:0', `${t.testdir({ 'index.php': PHP })}/index.php`]),
    plain: 'HTTP_X_PLAIN',
  },
  "Python's wsgiref": {
    tool: 'Python',
    start: () => spawn('python3', ['-c', PYTHON]),
    plain: 'HTTP_X_PLAIN',
  },
  Node: {
    start: () => spawn(process.execPath, ['-e', NODE]),
    plain: 'x-plain',
  },
};

/** Every name as it is and with each other character that a language may fold into `-` or `_`. */
function forgedNames(): string[] {
  const spelled = GATEWAY_NAMES.concat('Remote-User', 'X-Remote-User', 'Proxy-User').flatMap((name) =>
    OTHER_CHARACTERS.map((character) => name.replaceAll('-', character)),
  );
  const folded = TABLE_NAMES.flatMap((name) => [name, name.replaceAll('-', '_'), name.replaceAll('-', '.')]);
  return [...new Set([...GATEWAY_NAMES, ...spelled, ...folded])];
}

/** All fields that the module saw of one request. */
async function seenBy(url: string, names: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const forged = names.flatMap((name) => [name, 'forged']);
  const { text } = await sendHttp(url, {
    headers: [...forged, 'X-Plain', 'kept', 'Host', new URL(url).host],
  });
  return JSON.parse(text) as Record<string, string>;
}

async function addressOf(child: ChildProcess): Promise<string> {
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('no pipes');
  return await new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the module ended with ${code}`)));
    for (const output of [stdout, stderr])
      createInterface({ input: output }).on('line', (line) => {
        const found = /http:\/\/127\.0\.0\.1:[0-9]+/.exec(line)?.[0];
        if (found !== undefined) resolve(found);
      });
  });
}

for (const [name, { tool, start, plain }] of Object.entries(MODULES)) {
  // covers S29
  t.test(
    `header names: ${name} sees no forged field on a public path without a login`,
    { skip: tool === undefined ? false : lacking(tool) },
    async (t) => {
      const child = start(t);
      t.teardown(async () => {
        child.kill();
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      });
      let fieldsDropped = 0;
      const proxy = await startProxy({
        moduleUrl: await addressOf(child),
        rules: { public: ['/core/v1/public'] },
        onFieldsDropped: (count) => {
          fieldsDropped += count;
        },
      });
      t.teardown(() => proxy.close());
      const names = forgedNames();
      const forged: string[] = [];
      const plains = new Set<string | undefined>();
      for (let at = 0; at < names.length; at += FIELDS) {
        const seen = await seenBy(`${proxy.http.url}/core/v1/public/all`, names.slice(at, at + FIELDS));
        plains.add(seen[plain]);
        forged.push(...Object.keys(seen).filter((key) => seen[key] === 'forged'));
      }
      t.same(forged, []);
      t.same([...plains], ['kept'], 'other fields arrive');
      t.equal(fieldsDropped, names.filter((each) => /[^0-9A-Za-z-]/.test(each)).length);
    },
  );
}
