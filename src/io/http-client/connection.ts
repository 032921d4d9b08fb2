/**
 * One connection to a module: one request at a time, its answer read by the parser. The socket's bytes come by `onread`
 * in one buffer that all connections share, without a stream in between; whoever keeps some of them copies them.
 */
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { TickBatch } from '../batch.ts';
import type { RequestBody } from './request-body.ts';
import type { ResponseHead } from './response-head.ts';
import { KEEP_ALIVE_MS, ResponseParser, type ResponseSink } from './response-parser.ts';

/** A module that does not take a connection within this is down, whatever the time-out of the call. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Until the kernel asks whether an idle peer is still there. */
const TCP_KEEP_ALIVE_MS = 60_000;
/** Of a request's body, before the client is asked to wait. */
const WAITING_BYTES = 64 * 1024;
/** Reads are synchronous: what is in it has been taken when the next one begins. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1024);

/** The requests of a turn of the loop go out together. */
const OPENINGS = new TickBatch<Connection>('send', (connection) => connection.sendOpening());

/** What a connection carries: a request, and who hears of its answer. */
export interface ConnectionRequest {
  /** The head of the request, and a body that is at hand. */
  readonly opening: string;
  readonly encoding: 'latin1' | 'utf8';
  /** HEAD: the answer has no body, whatever it declares. */
  readonly toHead: boolean;
  /** A body that comes as the client sends it. */
  readonly body: RequestBody | undefined;
  onBegin(connection: Connection): void;
  onHead(head: ResponseHead): void;
  /** Valid during the call alone. */
  onData(bytes: Buffer): void;
  onEnd(): void;
  /** Nothing follows. `answerBegan`: bytes of an answer had come. */
  onBroken(reason: string, answerBegan: boolean): void;
}

/** Where a module listens. */
export interface Address {
  readonly hostname: string;
  readonly port: number;
  readonly isTls: boolean;
}

export type Phase = 'connecting' | 'idle' | 'busy';

/** Who keeps the connections. */
export interface ConnectionOwner {
  nowMs(): number;
  /** It can take a request; `phase` is what it was in before. */
  free(connection: Connection, phase: Phase): void;
  /** It is no more. */
  lost(connection: Connection, phase: Phase, reason: string): void;
}

export class Connection implements ResponseSink {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly #parser = new ResponseParser(this);
  readonly #connectTimer: NodeJS.Timeout;
  #phase: Phase = 'connecting';
  #request: ConnectionRequest | undefined;
  /** Its opening waits for the end of the turn. */
  #unsent = false;
  #answerBegan = false;
  #paused = false;
  #gone = false;
  /** On the owner's clock: a request after it might meet a module that is just closing. */
  idleUntilMs = 0;

  constructor(owner: ConnectionOwner, address: Address) {
    this.#owner = owner;
    this.#socket = open(address, (size) => this.#read(size));
    this.#connectTimer = setTimeout(() => this.#break('connect timeout'), CONNECT_TIMEOUT_MS);
    this.#socket.once(address.isTls ? 'secureConnect' : 'connect', () => this.#connected());
    this.#socket.on('drain', () => this.#request?.body?.drained());
    this.#socket.on('end', () => this.#ended());
    this.#socket.on('error', (error) => this.#break('code' in error ? String(error.code) : error.name));
    this.#socket.on('close', () => this.#break('closed'));
  }

  /** Takes the request, which leaves at the end of the turn; only while it is free. */
  carry(attempt: ConnectionRequest): void {
    this.#phase = 'busy';
    this.#request = attempt;
    this.#answerBegan = false;
    this.#parser.begin(attempt.toHead);
    this.#unsent = true;
    attempt.onBegin(this);
    OPENINGS.add(this);
  }

  /** Writes the request that it carries, unless that was given up or the connection broke meanwhile. */
  sendOpening(): void {
    const attempt = this.#request;
    if (attempt === undefined || !this.#unsent) return;
    this.#unsent = false;
    this.#socket.write(attempt.opening, attempt.encoding);
    attempt.body?.start((bytes) => this.#socket.write(bytes));
  }

  /**
   * One more piece may still come: reading stops when it has. Not the stream's own `pause`, which a `resume` of the same
   * turn undoes later, so that what nobody takes would go on coming.
   */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (this.#gone || !this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  /** Gives up what it carries: nothing more is told of it. */
  destroy(): void {
    this.#request?.body?.discard();
    this.#request = undefined;
    this.#break('destroyed');
  }

  /** Breaks what it carries, with this reason. */
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

  /** False: no more for now. */
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
    // Whoever heard of it may have given it up.
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

  /** `isClean`: nothing came behind the answer. What it would be read as is anybody's guess. */
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

function open({ hostname, port, isTls }: Address, callback: (size: number) => boolean): Socket {
  const options = {
    host: hostname,
    port,
    highWaterMark: WAITING_BYTES,
    onread: { buffer: READ_BUFFER, callback },
  };
  // SNI takes no addresses (RFC 6066 3).
  const names = isIP(hostname) === 0 ? { servername: hostname } : {};
  const socket = isTls
    ? connectTls({ ...options, ...names, ALPNProtocols: ['http/1.1'] })
    : connectTcp(options);
  return socket.setNoDelay(true).setKeepAlive(true, TCP_KEEP_ALIVE_MS);
}
