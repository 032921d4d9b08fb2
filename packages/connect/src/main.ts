#!/usr/bin/env node
/** The command `gatehouse-connect`: a stdio MCP server, the headers of a login, and a doctor. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { AddressError, addressOf, type GatewayAddress, isPlainOverNetwork } from './address.ts';
import { type AgentKey, keyOf } from './agent-key.ts';
import { AgentSession } from './agent-session.ts';
import { examine } from './doctor.ts';
import { explainRefusal } from './enrollment.ts';
import { fetchOf } from './gatehouse-fetch.ts';
import { defaultKeyFile, KeyFileError, loadKey } from './key-file.ts';
import { LoginRefused, login } from './login.ts';
import { causeOf, SYSTEM } from './send.ts';
import { serveStdio } from './stdio-server.ts';

const USAGE = `Usage: gatehouse-connect [COMMAND] URL [--key FILE] [--app ID]

  gatehouse-connect URL          MCP server on standard input and output
  gatehouse-connect header URL   prints {"Authorization":"Bearer ..."}
  gatehouse-connect doctor URL   checks the way to the gateway, step by step

  URL          address of the gateway, such as https://gate.example
  --key FILE   file of the agent's key, made at the first start
               (~/.config/gatehouse-connect/HOST.json)
  --app ID     log in for this application
  --version, --help

Environment: GATEHOUSE_KEY, the secret half of the key instead of a file.
`;
const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
const COMMANDS = { serve, header, doctor } as const;

interface Setup {
  readonly address: GatewayAddress;
  readonly key: AgentKey;
  readonly appId: string | undefined;
  readonly explain: (refused: LoginRefused) => Promise<string>;
}

/** Wrong arguments. */
class UsageError extends Error {}

function log(line: string): void {
  process.stderr.write(`gatehouse-connect: ${line}\n`);
}

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args);
  if (values.help) process.stdout.write(USAGE);
  else if (values.version) process.stdout.write(`${versionOf()}\n`);
  else {
    const [first, second] = positionals;
    const isCommand = first !== undefined && Object.hasOwn(COMMANDS, first);
    const command = isCommand ? (first as keyof typeof COMMANDS) : 'serve';
    const url = isCommand ? second : first;
    if (url === undefined || positionals.length > (isCommand ? 2 : 1))
      throw new UsageError('give one address');
    return await COMMANDS[command](setUp(url, values.key, values.app));
  }
  return EXIT.ok;
}

function readArguments(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        key: { type: 'string' },
        app: { type: 'string' },
        help: { type: 'boolean' },
        version: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function versionOf(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

function setUp(url: string, keyFile: string | undefined, appId: string | undefined): Setup {
  const address = addressOf(url);
  const key = readKey(address.origin, keyFile);
  if (isPlainOverNetwork(address.origin))
    log(`${address.origin} has no TLS: everybody on the way can read the session`);
  return { address, key, appId, explain: (refused) => explainRefusal(refused, address.origin, key) };
}

function readKey(origin: string, keyFile: string | undefined): AgentKey {
  const { GATEHOUSE_KEY: secret, ...environment } = process.env;
  if (keyFile === undefined && secret !== undefined && secret !== '') return keyOf(secret);
  const file = keyFile ?? defaultKeyFile(origin, environment);
  const { key, isNew } = loadKey(file);
  if (isNew) log(`a new key is in ${file}`);
  return key;
}

async function serve({ address: { origin, mcp }, key, appId, explain }: Setup): Promise<number> {
  const session = new AgentSession({
    url: origin,
    key,
    appId,
    onLogin: ({ loginType, expiresUtc }) => log(`logged in as ${loginType} until ${expiresUtc}`),
  });
  // A host that waits for nothing sees the link before its first call.
  session.token().catch(async (error: unknown) => log(await reasonOf(error, explain)));
  const fetch = fetchOf(session, { url: origin });
  const { stdin: input, stdout: output } = process;
  await serveStdio({ mcp, fetch, plain: SYSTEM, input, output, log, explain });
  return EXIT.ok;
}

async function header({ address, key, appId, explain }: Setup): Promise<number> {
  try {
    const { sessionId } = await login({ url: address.origin, key, appId });
    process.stdout.write(`${JSON.stringify({ Authorization: `Bearer ${sessionId}` })}\n`);
    return EXIT.ok;
  } catch (error) {
    log(await reasonOf(error, explain));
    return EXIT.failed;
  }
}

async function doctor({ address, key, appId, explain }: Setup): Promise<number> {
  let failed = false;
  for await (const { step, ok, says } of examine({ url: address.origin, ...address, key, appId, explain })) {
    process.stdout.write(`${ok ? 'ok  ' : 'FAIL'} ${step}: ${says}\n`);
    failed ||= !ok;
  }
  return failed ? EXIT.failed : EXIT.ok;
}

async function reasonOf(error: unknown, explain: Setup['explain']): Promise<string> {
  if (error instanceof LoginRefused) return await explain(error);
  const cause = causeOf(error);
  return `the gateway does not answer: ${cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : String(cause)}`;
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  const known = error instanceof UsageError || error instanceof AddressError || error instanceof KeyFileError;
  if (!known && !(error instanceof TypeError)) throw error;
  log(error.message);
  if (error instanceof UsageError) process.stderr.write(USAGE);
  process.exitCode = EXIT.usage;
}
