/**
 * Keep-alive connections to one origin, bounded in number, most recently used first. Requests queue in order of arrival.
 * A failed connect fails the oldest queued request, so that none waits for a module that is down.
 */
import type { LookupFunction } from 'node:net';
import {
  type Address,
  Connection,
  type ConnectionOwner,
  type ConnectionRequest,
  type Phase,
} from './connection.ts';

/** Interval of the sweep for idle connections, in milliseconds. */
const SWEEP_MS = 1_000;

export class ConnectionPool implements ConnectionOwner {
  /** Value of the `Host` header. */
  readonly host: string;
  readonly address: Address;
  readonly #connectionsMax: number;
  readonly nowMs: () => number;
  readonly #connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  readonly #waiting = new Set<ConnectionRequest>();
  /** Those that need a connection which no request has used. */
  readonly #waitingForNew = new Set<ConnectionRequest>();
  #connecting = 0;
  #busy = 0;
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;

  /** `origin`: scheme, host and port. `nowMs`: a monotonic clock. `lookup`: resolves the name for each connection. */
  constructor(origin: string, connectionsMax: number, nowMs: () => number, lookup?: LookupFunction) {
    const { host, hostname, port, protocol } = new URL(origin);
    const isTls = protocol === 'https:';
    this.host = host;
    this.address = {
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? (isTls ? 443 : 80) : Number(port),
      isTls,
      lookup,
    };
    this.#connectionsMax = connectionsMax;
    this.nowMs = nowMs;
  }

  /** Connections. */
  get open(): number {
    return this.#connections.size;
  }

  /** Requests in flight or queued. */
  get pending(): number {
    return this.#busy + this.#waitingCount;
  }

  /** `needsNew`: repeats a request whose kept connection was closed; others that are kept may be closed too. */
  submit(attempt: ConnectionRequest, needsNew = false): void {
    if (this.#closed) {
      attempt.onBroken('client closed', false);
      return;
    }
    const connection = needsNew ? undefined : this.#freshest();
    if (connection !== undefined) this.#carry(connection, attempt);
    else {
      (needsNew ? this.#waitingForNew : this.#waiting).add(attempt);
      if (needsNew && this.#connections.size >= this.#connectionsMax) this.#idle.shift()?.destroy();
      this.#open();
    }
  }

  drop(attempt: ConnectionRequest): void {
    this.#waiting.delete(attempt);
    this.#waitingForNew.delete(attempt);
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#sweeper);
    const waiting = [...this.#waitingForNew, ...this.#waiting];
    this.#waitingForNew.clear();
    this.#waiting.clear();
    for (const attempt of waiting) attempt.onBroken('client closed', false);
    for (const connection of [...this.#connections]) connection.fail('client closed');
  }

  free(connection: Connection, phase: Phase): void {
    if (phase === 'connecting') this.#connecting -= 1;
    else this.#busy -= 1;
    const isNew = phase === 'connecting';
    const next = (isNew ? takeFirst(this.#waitingForNew) : undefined) ?? takeFirst(this.#waiting);
    if (next !== undefined) this.#carry(connection, next);
    // Those that still wait need a new one, and this one takes its place.
    else if (this.#waitingCount > this.#connecting) connection.destroy();
    else {
      this.#idle.push(connection);
      this.#sweeper ??= setTimeout(() => this.#sweep(), SWEEP_MS).unref();
    }
  }

  lost(connection: Connection, phase: Phase, reason: string): void {
    this.#connections.delete(connection);
    if (phase === 'busy') this.#busy -= 1;
    else if (phase === 'idle') {
      const at = this.#idle.indexOf(connection);
      if (at >= 0) this.#idle.splice(at, 1);
    } else {
      this.#connecting -= 1;
      // A request that was dropped leaves its connection behind: each other request still has one of its own.
      if (this.#connecting < this.#waitingCount)
        (takeFirst(this.#waitingForNew) ?? takeFirst(this.#waiting))?.onBroken(reason, false);
    }
    this.#open();
  }

  get #waitingCount(): number {
    return this.#waiting.size + this.#waitingForNew.size;
  }

  #carry(connection: Connection, attempt: ConnectionRequest): void {
    this.#busy += 1;
    connection.carry(attempt);
  }

  #freshest(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.idleUntilMs > this.nowMs()) return connection;
      connection.destroy();
    }
  }

  /** Opens one connection for each queued request, up to the bound. */
  #open(): void {
    while (
      !this.#closed &&
      this.#connecting < this.#waitingCount &&
      this.#connections.size < this.#connectionsMax
    ) {
      this.#connecting += 1;
      this.#connections.add(new Connection(this, this.address));
    }
  }

  #sweep(): void {
    const nowMs = this.nowMs();
    for (const connection of this.#idle.filter(({ idleUntilMs }) => idleUntilMs <= nowMs))
      connection.destroy();
    this.#sweeper = this.#idle.length === 0 ? undefined : setTimeout(() => this.#sweep(), SWEEP_MS).unref();
  }
}

/** The one that has waited longest. */
function takeFirst(waiting: Set<ConnectionRequest>): ConnectionRequest | undefined {
  if (waiting.size === 0) return undefined;
  const { value } = waiting.values().next();
  if (value !== undefined) waiting.delete(value);
  return value;
}
