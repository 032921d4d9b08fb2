/**
 * One connection to a module: one request at a time, its answer read by the parser. `onread` delivers the socket's bytes
 * in one buffer shared by all connections; a consumer copies what it keeps.
 */
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { TickBatch } from '../batch.ts';
import type { ResponseHead } from './response-head.ts';
import { KEEP_ALIVE_MS, ResponseParser, type ResponseSink } from './response-parser.ts';

/** A module that accepts no connection within this time is down, independent of the call's time-out. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Delay of the kernel's keep-alive probe on an idle connection. */
const TCP_KEEP_ALIVE_MS = 60_000;
/** Buffered bytes of a request's body before back-pressure applies to the client. */
const WAITING_BYTES = 64 * 1024;
/** Reads are synchronous: its content is consumed before the next read begins. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** Requests of one event-loop tick are sent together. */
const OPENINGS = new TickBatch<Connection>('send', (connection) => connection.sendOpening());

/** Writes to the connection; false until it has drained. */
export type Write = (bytes: Buffer) => boolean;

/** A body that is written in pieces, after the head. */
export interface StreamedBody {
  /** All of it has been written. */
  readonly isComplete: boolean;
  start(write: Write): void;
  drained(): void;
  /** The rest is not needed. May be called more than once. */
  discard(): void;
}

/** A request on a connection, with the callbacks for its answer. */
export interface ConnectionRequest {
  /** The head of the request, and a body that is already buffered. */
  readonly opening: string;
  readonly encoding: 'latin1' | 'utf8';
  /** HEAD: the answer has no body, whatever it declares. */
  readonly toHead: boolean;
  readonly body: StreamedBody | undefined;
  onBegin(connection: Connection): void;
  onHead(head: ResponseHead): void;
  /** The bytes are valid during this call only. */
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** Final callback. `answerBegan`: bytes of an answer had arrived. */
  onBroken(reason: string, answerBegan: boolean): void;
}

export interface Address {
  readonly hostname: string;
  readonly port: number;
  readonly isTls: boolean;
  /** Resolves the name for each connection; the system's resolver unless given. IP literals are not looked up. */
  readonly lookup?: LookupFunction | undefined;
}

export type Phase = 'connecting' | 'idle' | 'busy';

/** The pool, as its connections see it. */
export interface ConnectionOwner {
  nowMs(): number;
  /** The connection is free; `phase` is its previous phase. */
  free(connection: Connection, phase: Phase): void;
  lost(connection: Connection, phase: Phase, reason: string): void;
}

export class Connection implements ResponseSink {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  readonly #connectTimer: NodeJS.Timeout;
  #phase: Phase = 'connecting';
  #request: ConnectionRequest | undefined;
  /** The request is written at the end of the event-loop tick. */
  #unsent = false;
  #answerBegan = false;
  #served = 0;
  #paused = false;
  #gone = false;
  /** Time on the owner's clock: a later request might race with the module closing the connection. */
  idleUntilMs = 0;

  constructor(owner: ConnectionOwner, address: Address) {
    this.#owner = owner;
    const callback = (size: number) => this.#read(size);
    this.#socket = openSocket(address, { buffer: READ_BUFFER, callback });
    this.#connectTimer = setTimeout(() => this.#break('connect timeout'), CONNECT_TIMEOUT_MS);
    this.#socket.once(address.isTls ? 'secureConnect' : 'connect', () => this.#connected());
    this.#socket.on('drain', () => this.#request?.body?.drained());
    this.#socket.on('end', () => this.#ended());
    this.#socket.on('error', (error) => this.#break('code' in error ? String(error.code) : error.name));
    this.#socket.on('close', () => this.#break('closed'));
  }

  /** The request is not its first: the other side may have closed it meanwhile. */
  get isReused(): boolean {
    return this.#served > 1;
  }

  /** Accepts a request, which is written at the end of the tick; only while the connection is free. */
  carry(attempt: ConnectionRequest): void {
    this.#phase = 'busy';
    this.#request = attempt;
    this.#served += 1;
    this.#answerBegan = false;
    this.#parser.begin(attempt.toHead);
    this.#unsent = true;
    attempt.onBegin(this);
    OPENINGS.add(this);
  }

  /** Writes the request, unless it was aborted or the connection broke meanwhile. */
  sendOpening(): void {
    const attempt = this.#request;
    if (attempt === undefined || !this.#unsent) return;
    this.#unsent = false;
    this.#socket.write(attempt.opening, attempt.encoding);
    attempt.body?.start((bytes) => this.#socket.write(bytes));
  }

  /**
   * Reading stops after at most one more piece. The stream's own `pause` is not used: a `resume` in the same tick would
   * undo it later.
   */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (this.#gone || !this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  /** Aborts the request without any further callback. */
  destroy(): void {
    this.#request?.body?.discard();
    this.#request = undefined;
    this.#break('destroyed');
  }

  fail(reason: string): void {
    this.#break(reason);
  }

  onHead(head: ResponseHead): void {
    this.#request?.onHead(head);
  }

  onData(bytes: Buffer): void {
    this.#request?.onData(bytes);
  }

  #connected(): void {
    if (this.#gone) return;
    clearTimeout(this.#connectTimer);
    this.#free(KEEP_ALIVE_MS);
  }

  #free(keepAliveMs: number): void {
    const phase = this.#phase;
    this.#phase = 'idle';
    this.idleUntilMs = this.#owner.nowMs() + keepAliveMs;
    this.#owner.free(this, phase);
  }

  /** False stops reading. */
  #read(size: number): boolean {
    if (!this.#gone) this.#take(size);
    return !this.#paused;
  }

  #take(size: number): void {
    if (this.#request === undefined || this.#unsent) {
      this.#break('bytes without a request');
      return;
    }
    this.#answerBegan = true;
    const progress = this.#parser.read(READ_BUFFER, size);
    // A callback may have aborted the request.
    if (this.#gone || progress === 'more') return;
    if (progress === 'complete') this.#complete(this.#parser.position === size);
    else this.#break(this.#parser.fault);
  }

  /** The module closed its side. */
  #ended(): void {
    if (this.#gone) return;
    if (this.#request !== undefined && this.#parser.closed() === 'complete') this.#complete(false);
    else this.#break(this.#answerBegan ? this.#parser.fault : 'closed');
  }

  /** `isClean`: no bytes follow the answer. With such bytes the connection cannot be used again. */
  #complete(isClean: boolean): void {
    const attempt = this.#request;
    if (attempt === undefined) return;
    const { keepAliveMs } = this.#parser;
    const isWhole = attempt.body === undefined || attempt.body.isComplete;
    this.#request = undefined;
    attempt.body?.discard();
    if (isClean && isWhole && keepAliveMs > 0 && !attempt.toHead) {
      this.resume();
      this.#free(keepAliveMs);
    } else this.#break('not kept');
    attempt.onEnd();
  }

  #break(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    clearTimeout(this.#connectTimer);
    this.#socket.destroy();
    const attempt = this.#request;
    this.#request = undefined;
    attempt?.body?.discard();
    this.#owner.lost(this, this.#phase, reason);
    attempt?.onBroken(reason, this.#answerBegan);
  }
}

/** A socket to a module. `onRead` receives the bytes in place of the stream's events. */
export function openSocket(
  { hostname, port, isTls, lookup }: Address,
  onRead?: { readonly buffer: Uint8Array; readonly callback: (size: number) => boolean },
): Socket {
  const options = {
    host: hostname,
    port,
    ...(lookup === undefined ? {} : { lookup }),
    highWaterMark: WAITING_BYTES,
    ...(onRead === undefined ? {} : { onread: onRead }),
  };
  // SNI allows no IP addresses (RFC 6066 3).
  const names = isIP(hostname) === 0 ? { servername: hostname } : {};
  const socket = isTls
    ? connectTls({ ...options, ...names, ALPNProtocols: ['http/1.1'] })
    : connectTcp(options);
  return socket.setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS);
}
