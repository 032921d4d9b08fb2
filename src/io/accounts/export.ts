/**
 * Export of an account: one JSON document with everything that the gateway has of it, and its files as the chat module
 * lists them. It is written piece by piece, at the pace of the reader, and no piece is larger than one list.
 */
import { user } from '../../actors/accounts/user.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import { listAppAccess, listApps } from '../apps/apps.ts';
import { listHosts } from '../connect/hosts.ts';
import type { OutgoingBody, OutgoingSource } from '../http/exchange/stream.ts';
import type { RouteContext } from '../http/table/route.ts';
import { endpointUrl, parseEndpoint } from '../http-client/endpoint.ts';
import { factsOf, gatewayHeaders } from '../http-client/headers.ts';
import type { ModuleClient } from '../modules/client.ts';
import { type AccountCall, listLogins, listSessions, userKeyItem } from './account.ts';
import { profileOf } from './profile.ts';

const CALL_TIMEOUT_MS = 10 * SECOND_MS;
/** Files of a chat that the module lists at most. */
const FILES_MAX = 200;

export interface ExportDeps {
  readonly modules: Pick<ModuleClient, 'call'>;
  readonly moduleAddresses: ReadonlyMap<string, string>;
}

type Context = RouteContext<unknown, unknown, SessionContext>;

/** Texts that together are the document. Throws what an actor refuses. */
export async function* exportOf(
  deps: ExportDeps,
  context: Context,
  call: AccountCall,
): AsyncGenerator<string, void> {
  const { actors, session, nowMs } = context;
  const { userId, keyId } = session;
  const keys = async () => {
    const all = await actors.query(user, userId, { type: 'keys', removed: true });
    return all.map((key) => userKeyItem(key, keyId));
  };
  const contactSync = async () => {
    const tokens = await actors.query(user, userId, { type: 'contactSync' });
    return tokens.map(({ id, keyId: ofKey, name, createdMs }) => ({
      id,
      keyId: ofKey,
      name,
      createdUtc: toIso(createdMs),
    }));
  };
  const servers = async () => {
    const credentials = await actors.query(user, userId, { type: 'upstreams' });
    return credentials.map(({ server, kind, connectedMs }) => ({
      server,
      kind,
      connectedUtc: toIso(connectedMs),
    }));
  };
  const lists: readonly (readonly [name: string, read: () => unknown])[] = [
    ['profile', () => profileOf(context)],
    ['keys', keys],
    ['sessions', () => listSessions(call)],
    ['contactSyncTokens', contactSync],
    ['applications', () => listApps(call)],
    ['applicationAccess', () => listAppAccess(call)],
    ['connectedHosts', () => listHosts(actors, userId)],
    ['connectedServers', servers],
    ['logins', () => listLogins(call)],
  ];
  yield `{"exportedUtc":${JSON.stringify(toIso(nowMs))}`;
  for (const [name, read] of lists) yield `,\n"${name}":${JSON.stringify(await read())}`;
  yield* filesOf(deps, context);
  yield '}\n';
}

/** `files`: those that the person sent. `filesMissing`: why others may be missing, null when none is. */
async function* filesOf(deps: ExportDeps, context: Context): AsyncGenerator<string, void> {
  yield ',\n"files":[';
  const missing = new Set<string>();
  let separator = '\n';
  for (const archived of ['false', 'true']) {
    const chats = rowsOf(await ask(deps, context, 'chats/list', { archived }), 'chats');
    if (chats === undefined) missing.add('the chat module did not list its chats');
    for (const { id } of chats ?? []) {
      const query = { chatId: String(id), limit: String(FILES_MAX) };
      const files = rowsOf(await ask(deps, context, 'files/list', query), 'files');
      if (files === undefined) missing.add(`chat ${String(id)} was not listed`);
      else if (files.length >= FILES_MAX)
        missing.add(`of chat ${String(id)} the newest ${FILES_MAX} were listed`);
      for (const file of files ?? []) {
        if (String(file['senderId']) !== context.session.userId) continue;
        yield separator + JSON.stringify(file);
        separator = ',\n';
      }
    }
  }
  yield `],\n"filesMissing":${JSON.stringify(missing.size === 0 ? null : [...missing].join('; '))}`;
}

/**
 * Asks for the list of the session's user, as a tool call would ask. Undefined where the module did not give a list.
 */
async function ask(
  { modules, moduleAddresses }: ExportDeps,
  context: Context,
  path: string,
  query: Readonly<Record<string, string>>,
): Promise<unknown> {
  const endpoint = `chat:/chat/v1/${path}`;
  const parsed = parseEndpoint(endpoint, moduleAddresses);
  const target = parsed.ok ? endpointUrl(parsed.endpoint, {}, query) : undefined;
  if (target?.ok !== true) return undefined;
  const result = await modules.call({
    method: 'GET',
    url: target.url,
    headers: gatewayHeaders({ kind: 'session', session: context.session }, factsOf(context)),
    body: undefined,
    timeoutMs: CALL_TIMEOUT_MS,
    endpoint,
    holder: context.holder,
  });
  if (!result.ok || result.answer.status !== 200) return undefined;
  try {
    return JSON.parse(result.answer.body.toString('utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Undefined for an answer that is no list of objects under this name. */
function rowsOf(answer: unknown, name: string): readonly Record<string, unknown>[] | undefined {
  const result = isRecord(answer) ? answer['result'] : undefined;
  const rows = isRecord(result) ? result[name] : undefined;
  return Array.isArray(rows) && rows.every(isRecord) ? rows : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Sends the pieces of a document, the next one once the last has left. */
export class PiecesSource implements OutgoingSource {
  readonly #pieces: AsyncGenerator<string, void>;
  readonly #onBug: (error: unknown) => void;
  #out: OutgoingBody | undefined;

  constructor(pieces: AsyncGenerator<string, void>, onBug: (error: unknown) => void) {
    this.#pieces = pieces;
    this.#onBug = onBug;
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    void this.#send();
  }

  drained(): void {
    void this.#send();
  }

  lost(): void {
    this.#out = undefined;
  }

  async #send(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#pieces.next();
        const out = this.#out;
        if (out === undefined) break;
        if (done === true) {
          out.end();
          return;
        }
        if (!out.send(value)) return;
      }
      await this.#pieces.return();
    } catch (error) {
      this.#out?.cut(error instanceof GatewayError ? error.row : 'InternalError');
      if (!(error instanceof GatewayError)) this.#onBug(error);
    }
  }
}
