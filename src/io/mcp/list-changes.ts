/**
 * Streams of `subscriptions/listen` (MCP 2026-07-28): a client is notified when a reload of the catalog changed its list of tools,
 * prompts or resources. They share the bound of event streams, and end with their session, a lifetime, or a stop.
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { type CallerClass, callerClass } from '../../domain/access.ts';
import { GatewayError } from '../../domain/errors.ts';
import type { SharedBounds } from '../../domain/limits/shared-bounds.ts';
import type { Lease } from '../../domain/limits/shares.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { type Clock, SECOND_MS } from '../../domain/time.ts';
import type { OutgoingBody, OutgoingSource, StreamReply } from '../http/exchange/stream.ts';
import type { RouteContext } from '../http/table/route.ts';
import type { RequestContext } from './audit.ts';
import type { Catalog, CatalogView, LiveCatalog } from './catalog.ts';
import { isObject } from './input-schema.ts';
import type { RpcRequest } from './rpc.ts';
import { eventStream, frame } from './sse.ts';

/** A comment that often keeps proxies from closing an idle connection. */
const HEARTBEAT_MS = 20 * SECOND_MS;
/** Then the stream ends as complete, and the client opens another one. Spreads clients over the nodes of a cluster. */
const LIFETIME_MS = 600 * SECOND_MS;
const COMMENT = ':\n\n';

/** Changes that a client can follow, by the member of its filter. */
const KINDS = {
  toolsListChanged: { method: 'notifications/tools/list_changed', lists: ['toolLists'] },
  promptsListChanged: { method: 'notifications/prompts/list_changed', lists: ['promptLists'] },
  resourcesListChanged: {
    method: 'notifications/resources/list_changed',
    lists: ['resourceLists', 'templateLists'],
  },
} as const;
type Kind = keyof typeof KINDS;

interface ListChangesDeps {
  readonly catalog: LiveCatalog;
  readonly bounds: SharedBounds;
  readonly clock: Clock;
  readonly schedule: Schedule;
  isSessionAlive(session: SessionContext): boolean;
}

export class ListChanges {
  readonly #deps: ListChangesDeps;
  readonly #streams = new Set<ListStream>();
  readonly #bySession = new Map<string, Set<ListStream>>();
  #stopTimer: (() => void) | undefined;
  #isStopping = false;

  constructor(deps: ListChangesDeps) {
    this.#deps = deps;
    deps.catalog.onChange((before, after) => this.#changed(before, after));
  }

  /** Throws `InvalidParams` without a filter, `Unauthorized` without a session, and the errors of the bound. */
  open(request: RpcRequest, { context, caller }: RequestContext): StreamReply {
    const filter = request.params['notifications'];
    if (!isObject(filter)) throw new GatewayError('InvalidParams', 'notifications must be an object');
    if (caller.kind !== 'session') throw new GatewayError('Unauthorized', 'log in to be notified of changes');
    if (this.#isStopping) throw new GatewayError('Stopping');
    const kinds = (Object.keys(KINDS) as Kind[]).filter((kind) => filter[kind] === true);
    const stream = new ListStream({
      id: request.id,
      kinds,
      caller: callerClass(caller),
      session: caller.session,
      profile: profileOf(context),
      lease: this.#deps.bounds.of('eventStreams').require(context.holder),
      openedMs: this.#deps.clock(),
      onLost: (lost) => this.#remove(lost),
    });
    // Nothing that was asked for can change: the stream is complete after its first message.
    if (kinds.length === 0) stream.complete();
    else this.#add(stream);
    return eventStream(stream, true);
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Completes the streams of an ended session at once. */
  sessionEnded(sessionId: string): void {
    for (const stream of [...(this.#bySession.get(sessionId) ?? [])]) this.#end(stream);
  }

  /** Refuses new streams and completes all open ones. Resolves with the number of remaining streams: 0. */
  async drain(): Promise<number> {
    this.#isStopping = true;
    for (const stream of [...this.#streams]) this.#end(stream);
    return this.#streams.size;
  }

  #add(stream: ListStream): void {
    this.#streams.add(stream);
    const { id } = stream.session;
    this.#bySession.set(id, (this.#bySession.get(id) ?? new Set()).add(stream));
    this.#stopTimer ??= this.#arm();
  }

  #remove(stream: ListStream): void {
    this.#streams.delete(stream);
    const ofSession = this.#bySession.get(stream.session.id);
    if (ofSession?.delete(stream) === true && ofSession.size === 0) this.#bySession.delete(stream.session.id);
    if (this.#streams.size > 0) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #end(stream: ListStream): void {
    stream.complete();
    this.#remove(stream);
  }

  #arm(): () => void {
    return this.#deps.schedule.timer(SECOND_MS, () => {
      this.#stopTimer = undefined;
      this.#beat();
      if (this.#streams.size > 0) this.#stopTimer = this.#arm();
    });
  }

  #beat(): void {
    const nowMs = this.#deps.clock();
    for (const stream of [...this.#streams]) {
      if (nowMs < stream.nextBeatMs && nowMs < stream.endsMs) continue;
      if (nowMs >= stream.endsMs || !this.#deps.isSessionAlive(stream.session)) this.#end(stream);
      else stream.beat(nowMs);
    }
  }

  #changed(before: Catalog, after: Catalog): void {
    // Many streams have the same lists.
    const known = new Map<string, boolean>();
    for (const stream of [...this.#streams]) {
      const [former, present] = [viewOf(before, stream.profile), viewOf(after, stream.profile)];
      if (present === undefined) this.#end(stream);
      else
        for (const kind of stream.kinds) {
          const key = `${kind} ${stream.caller} ${stream.profile ?? ''}`;
          const differs = known.get(key) ?? isChanged(kind, stream.caller, former, present);
          known.set(key, differs);
          if (differs) stream.notify(kind);
        }
    }
  }
}

interface ListStreamOptions {
  /** JSON text of the id of the request: the id of the subscription. */
  readonly id: string;
  readonly kinds: readonly Kind[];
  readonly caller: CallerClass;
  readonly session: SessionContext;
  readonly profile: string | undefined;
  readonly lease: Lease;
  readonly openedMs: number;
  readonly onLost: (stream: ListStream) => void;
}

class ListStream implements OutgoingSource {
  readonly #options: ListStreamOptions;
  readonly endsMs: number;
  nextBeatMs: number;
  #out: OutgoingBody | undefined;
  #isBlocked = false;
  #isComplete = false;
  /** Due once the socket has room; each kind once. */
  readonly #due = new Set<Kind>();

  constructor(options: ListStreamOptions) {
    this.#options = options;
    this.nextBeatMs = options.openedMs + HEARTBEAT_MS;
    this.endsMs = options.openedMs + LIFETIME_MS;
  }

  get kinds(): readonly Kind[] {
    return this.#options.kinds;
  }

  get caller(): CallerClass {
    return this.#options.caller;
  }

  get session(): SessionContext {
    return this.#options.session;
  }

  get profile(): string | undefined {
    return this.#options.profile;
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    const filter = Object.fromEntries(this.kinds.map((kind) => [kind, true]));
    const notifications = `,"notifications":${JSON.stringify(filter)}`;
    this.#send(this.#notification('notifications/subscriptions/acknowledged', notifications));
    this.#flush();
  }

  drained(): void {
    this.#isBlocked = false;
    this.#flush();
  }

  lost(): void {
    this.#out = undefined;
    this.#options.lease.release();
    this.#options.onLost(this);
  }

  beat(nowMs: number): void {
    this.nextBeatMs = nowMs + HEARTBEAT_MS;
    if (!this.#isBlocked) this.#send(COMMENT);
  }

  notify(kind: Kind): void {
    this.#due.add(kind);
    this.#flush();
  }

  /** The result of the request, which ends the stream. */
  complete(): void {
    this.#isComplete = true;
    this.#flush();
  }

  #flush(): void {
    for (const kind of this.#due) {
      if (this.#isBlocked || this.#out === undefined) return;
      this.#due.delete(kind);
      this.#send(this.#notification(KINDS[kind].method, ''));
    }
    const out = this.#out;
    if (!this.#isComplete || this.#isBlocked || out === undefined) return;
    const { id, lease } = this.#options;
    this.#out = undefined;
    lease.release();
    out.send(frame(`"id":${id},"result":{"resultType":"complete",${this.#meta()}}`));
    out.end();
  }

  #notification(method: string, params: string): string {
    return frame(`"method":"${method}","params":{${this.#meta()}${params}}`);
  }

  #meta(): string {
    return `"_meta":{"io.modelcontextprotocol/subscriptionId":${this.#options.id}}`;
  }

  #send(bytes: string): void {
    if (this.#out?.send(bytes) === false) this.#isBlocked = true;
  }
}

function profileOf({ params }: RouteContext): string | undefined {
  return params['profile'];
}

function viewOf(catalog: Catalog, profile: string | undefined): CatalogView | undefined {
  return profile === undefined ? catalog.whole : catalog.profiles.get(profile);
}

function isChanged(
  kind: Kind,
  caller: CallerClass,
  before: CatalogView | undefined,
  after: CatalogView,
): boolean {
  const { lists } = KINDS[kind];
  return lists.some((list) => before?.[list][caller].toString() !== after[list][caller].toString());
}
