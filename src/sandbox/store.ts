/**
 * The sandbox modules over one log: finds the endpoint, runs it, and sends the answer when all data that it may show
 * is on disk.
 */
import { parseId, TickSource } from '../domain/ids.ts';
import type { Clock } from '../domain/time.ts';
import type { ModuleCall } from './call-arguments.ts';
import type { ChatModule } from './chat/chat.ts';
import type { DavAnswer, DavRequest } from './dav.ts';
import { errorBody, SandboxError } from './errors.ts';
import type { ModuleEndpoint, SandboxModule } from './module.ts';
import { createModules } from './modules.ts';
import { RecordLog, type SandboxRecord } from './record-log.ts';

interface SandboxRequest {
  readonly method: string;
  readonly path: string;
  readonly query: ReadonlyMap<string, string>;
  /** `X-Crm` as sent. */
  readonly crm: string | undefined;
  /** `X-Scopes` as sent. */
  readonly scopes: string | undefined;
  /** `X-Device-Guid` as sent. */
  readonly deviceGuid?: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface SandboxAnswer {
  readonly status: number;
  readonly body: string;
  /** Absent: `application/json`, and nothing where `headers` are given. */
  readonly contentType?: string;
  readonly headers?: DavAnswer['headers'];
}

export class SandboxStore {
  readonly #log: RecordLog;
  readonly #ticks: TickSource;
  readonly #clock: Clock;
  readonly #modules: ReadonlyMap<string, SandboxModule>;
  readonly #chat: ChatModule;
  readonly #endpoints = new Map<string, ModuleEndpoint>();
  readonly #paths = new Set<string>();

  private constructor(
    log: RecordLog,
    ticks: TickSource,
    clock: Clock,
    modules: ReadonlyMap<string, SandboxModule>,
    chat: ChatModule,
  ) {
    this.#log = log;
    this.#ticks = ticks;
    this.#clock = clock;
    this.#modules = modules;
    this.#chat = chat;
    for (const module of modules.values()) {
      for (const endpoint of module.endpoints) {
        this.#endpoints.set(`${endpoint.method} ${endpoint.path}`, endpoint);
        this.#paths.add(endpoint.path);
      }
    }
  }

  /** Replays the log at `path`. Throws when it is damaged anywhere but at its end. */
  static async open(path: string, clock: Clock): Promise<SandboxStore> {
    const { byName: modules, chat } = createModules();
    let lastTick = 0n;
    const log = await RecordLog.open(path, (record) => {
      const module = modules.get(record.module);
      if (module === undefined) throw new Error(`${path} was written by a module "${record.module}"`);
      module.apply(record);
      const tick = BigInt(record.tick);
      if (tick > lastTick) lastTick = tick;
    });
    return new SandboxStore(log, new TickSource(lastTick), clock, modules, chat);
  }

  /** Rejects only when the disk failed: then nothing more may be answered. */
  async handle(request: SandboxRequest): Promise<SandboxAnswer> {
    const records: SandboxRecord[] = [];
    const answer = this.#run(request, records);
    await (records.length > 0 ? this.#log.append(records) : this.#log.settled());
    return answer;
  }

  /** Does the module that serves the path speak WebDAV? */
  speaksDav(path: string): boolean {
    return this.#modules.get(this.moduleOf(path) ?? '')?.dav !== undefined;
  }

  /** Answers a DAV request; its records are stored as those of `handle`. */
  async dav(request: DavRequest): Promise<SandboxAnswer> {
    const records: SandboxRecord[] = [];
    const answer = refusable(() => {
      const userId = request.crm === undefined ? undefined : parseId(request.crm);
      const facts = { userId: userId ?? null, deviceGuid: null, query: new Map(), body: {} };
      const { tick, commit } = this.#callOf(facts, records);
      const module = this.#modules.get(this.moduleOf(request.path) ?? '');
      if (module?.dav === undefined) throw new SandboxError('NotFound');
      return module.dav({ ...request, userId: facts.userId, tick, commit });
    });
    await (records.length > 0 ? this.#log.append(records) : this.#log.settled());
    return answer;
  }

  async events(moduleName: string, query: ReadonlyMap<string, string>): Promise<SandboxAnswer> {
    await this.#log.settled();
    return refusable(() => {
      const module = this.#modules.get(moduleName);
      if (module === undefined) throw new SandboxError('NotFound', 'no such module');
      return module.events.page(query);
    });
  }

  async outbox(): Promise<SandboxAnswer> {
    await this.#log.settled();
    return { status: 200, body: JSON.stringify({ result: { deliveries: this.#chat.outbox() } }) };
  }

  /** The module that serves a path, by its first segment. */
  moduleOf(path: string): string | undefined {
    const name = path.split('/', 2)[1] ?? '';
    return this.#modules.has(name) ? name : undefined;
  }

  close(): Promise<void> {
    return this.#log.close();
  }

  #writerOf({ module }: SandboxRecord): SandboxModule {
    const writer = this.#modules.get(module);
    if (writer === undefined) throw new Error(`no module "${module}" in the sandbox`);
    return writer;
  }

  /** Begins what the named modules keep for each user. Rejects only when the disk failed. */
  async signedUp(userId: string, names: readonly string[]): Promise<void> {
    const records: SandboxRecord[] = [];
    const call = this.#callOf({ userId, deviceGuid: null, query: new Map(), body: {} }, records);
    for (const name of names) this.#modules.get(name)?.signedUp?.(call);
    if (records.length > 0) await this.#log.append(records);
  }

  #callOf(
    facts: Pick<ModuleCall, 'userId' | 'deviceGuid' | 'query' | 'body'>,
    records: SandboxRecord[],
  ): ModuleCall {
    const nowMs = this.#clock();
    const { userId, deviceGuid, query, body } = facts;
    return {
      userId,
      deviceGuid,
      query,
      body,
      nowMs,
      tick: () => this.#ticks.next(nowMs).toString(),
      commit: (record) => {
        this.#writerOf(record).apply(record);
        records.push(record);
      },
    };
  }

  #run(request: SandboxRequest, records: SandboxRecord[]): SandboxAnswer {
    return refusable(() => {
      const endpoint = this.#endpoints.get(`${request.method} ${request.path}`);
      if (endpoint === undefined)
        throw new SandboxError(this.#paths.has(request.path) ? 'MethodNotAllowed' : 'NotFound');
      const userId = request.crm === undefined ? undefined : parseId(request.crm);
      if (endpoint.calledFor === 'user' && userId === undefined) throw new SandboxError('Unauthorized');
      if (endpoint.calledFor === 'gateway' && (request.crm ?? request.scopes) !== undefined)
        throw new SandboxError('Forbidden', 'for the gateway itself only');
      if (endpoint.calledFor.startsWith('Capability:') && !holdsCode(request, endpoint.calledFor))
        throw new SandboxError('Forbidden', 'for holders of a code only');
      const { query, body, deviceGuid = null } = request;
      const call = this.#callOf({ userId: userId ?? null, deviceGuid, query, body }, records);
      return JSON.stringify({ result: endpoint.handle(call) });
    });
  }
}

/** A call for a capability code has its scope and no user. */
function holdsCode({ crm, scopes }: SandboxRequest, wanted: string): boolean {
  return crm === undefined && scopes === wanted;
}

/** Runs something that may refuse. What was committed before a refusal stays. */
function refusable(run: () => string | DavAnswer): SandboxAnswer {
  try {
    const answer = run();
    return typeof answer === 'string' ? { status: 200, body: answer } : answer;
  } catch (error) {
    if (error instanceof SandboxError) return { status: error.row.status, body: errorBody(error) };
    throw error;
  }
}
