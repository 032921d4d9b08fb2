/**
 * The handshake of a link: both sides prove that they have the secret of the cluster, over a fresh challenge of the other.
 * A recorded one is worth nothing, nor is one that is relayed into another TLS session (docs/decisions/0220).
 */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { compileSchema, integer, object, type Static, text, union } from '../../domain/schema.ts';

/** Form of the frames behind the handshake. Nodes of another form have no links with this one. */
const LINK_LAYOUT = 1;
/** Bytes of one message of the handshake. */
export const HELLO_BYTES_MAX = 1_024;
/** Highest number of a node: 6 bits of an id. */
const NODE_MAX = 63;
const NONCE_BYTES = 32;
const KEY_BYTES = 32;

/** Identity that a node claims. */
export interface Identity {
  readonly node: number;
  readonly incarnation: number;
  /** One life of the log: nodes of another log apply other rows. */
  readonly logId: string;
  readonly version: string;
}

/** `secret`: no proof of it. `node`: not the node that was dialed, or this node itself. */
export type RefusalReason = 'format' | 'secret' | 'layout' | 'log' | 'node' | 'incarnation';

/** The handshake has failed. `byPeer`: the other side says so. */
export class HandshakeRefused extends Error {
  readonly reason: RefusalReason;
  readonly byPeer: boolean;

  constructor(reason: RefusalReason, byPeer = false) {
    super(`the handshake was refused: ${reason}`);
    this.name = 'HandshakeRefused';
    this.reason = reason;
    this.byPeer = byPeer;
  }
}

const token = () => text({ maxLength: 64 });
const position = (maximum: number) => integer({ minimum: 1, maximum });
const greetingSchema = object({ nonce: token() });
const helloSchema = object({
  layout: integer({ minimum: 1 }),
  node: position(NODE_MAX),
  incarnation: position(Number.MAX_SAFE_INTEGER),
  logId: token(),
  version: token(),
  nonce: token(),
  proof: token(),
});
const refusalSchema = object({ refused: text({ maxLength: 16 }) });
const greetings = compileSchema(greetingSchema);
const hellos = compileSchema(helloSchema);
const answers = compileSchema(union([helloSchema, refusalSchema]));

type Hello = Static<typeof helloSchema>;
type Role = 'dialer' | 'acceptor';

const REASONS: ReadonlySet<string> = new Set<RefusalReason>([
  'format',
  'secret',
  'layout',
  'log',
  'node',
  'incarnation',
]);

/** Keys of the secrets. The first proves, any of them is accepted: a secret can be changed node by node. */
export function linkKeys(secrets: readonly string[]): readonly Buffer[] {
  return secrets.map((secret) =>
    Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), 'gatehouse cluster link', KEY_BYTES)),
  );
}

interface HandshakeOptions {
  readonly self: Identity;
  readonly keys: readonly Buffer[];
  readonly randomBytes: (length: number) => Uint8Array;
  /** Channel binding of the TLS session, the same at both ends (RFC 9266); empty without TLS. */
  readonly binding: string;
}

/** The side that was dialed. It says nothing of itself before the other has proven the secret. */
export class AcceptorHandshake {
  readonly #options: HandshakeOptions;
  readonly #nonce: string;

  constructor(options: HandshakeOptions) {
    this.#options = options;
    this.#nonce = nonceOf(options);
  }

  /** First message. */
  greeting(): string {
    return JSON.stringify({ nonce: this.#nonce });
  }

  /** Reads the second message; the third. Throws `HandshakeRefused`. */
  answer(frame: Uint8Array): { readonly peer: Identity; readonly message: string } {
    const { self, keys } = this.#options;
    const hello = read(frame, hellos);
    const context = contextOf(this.#options, this.#nonce, hello.nonce);
    const key = keys.find((each) => isProven(each, 'dialer', context, hello));
    if (key === undefined) throw new HandshakeRefused('secret');
    checkPeer(self, hello);
    if (hello.node === self.node) throw new HandshakeRefused('node');
    return {
      peer: identityOf(hello),
      message: JSON.stringify(prove(key, 'acceptor', context, self, hello.nonce)),
    };
  }

  /** Third message of a handshake that failed. */
  refusal(reason: RefusalReason): string {
    return JSON.stringify({ refused: reason });
  }
}

/** The side that dials one certain node. */
export class DialerHandshake {
  readonly #options: HandshakeOptions;
  readonly #node: number;
  readonly #nonce: string;
  #context = '';

  constructor(options: HandshakeOptions, node: number) {
    this.#options = options;
    this.#node = node;
    this.#nonce = nonceOf(options);
  }

  /** Reads the first message; the second. Throws `HandshakeRefused`. */
  hello(frame: Uint8Array): string {
    const { self, keys } = this.#options;
    const { nonce } = read(frame, greetings);
    this.#context = contextOf(this.#options, nonce, this.#nonce);
    const [key] = keys;
    if (key === undefined) throw new TypeError('a link needs a secret');
    return JSON.stringify(prove(key, 'dialer', this.#context, self, this.#nonce));
  }

  /** Reads the third message. Throws `HandshakeRefused`. */
  finish(frame: Uint8Array): Identity {
    const { self, keys } = this.#options;
    const answer = read(frame, answers);
    if ('refused' in answer) {
      const reason = REASONS.has(answer.refused) ? (answer.refused as RefusalReason) : 'format';
      throw new HandshakeRefused(reason, true);
    }
    if (!keys.some((key) => isProven(key, 'acceptor', this.#context, answer)))
      throw new HandshakeRefused('secret');
    checkPeer(self, answer);
    if (answer.node !== this.#node) throw new HandshakeRefused('node');
    return identityOf(answer);
  }
}

function checkPeer(self: Identity, { layout, logId }: Hello): void {
  if (layout !== LINK_LAYOUT) throw new HandshakeRefused('layout');
  if (logId !== self.logId) throw new HandshakeRefused('log');
}

function identityOf({ node, incarnation, logId, version }: Hello): Identity {
  return { node, incarnation, logId, version };
}

function nonceOf({ randomBytes }: HandshakeOptions): string {
  return Buffer.from(randomBytes(NONCE_BYTES)).toString('base64url');
}

/** Returns the context that both proofs cover besides the claims of their side. */
function contextOf({ binding }: HandshakeOptions, acceptorNonce: string, dialerNonce: string): string {
  return JSON.stringify([binding, acceptorNonce, dialerNonce]);
}

function prove(key: Buffer, role: Role, context: string, self: Identity, nonce: string): Hello {
  const { node, incarnation, logId, version } = self;
  const said = { layout: LINK_LAYOUT, node, incarnation, logId, version, nonce };
  return { ...said, proof: proofOf(key, role, context, said).toString('base64url') };
}

function isProven(key: Buffer, role: Role, context: string, hello: Hello): boolean {
  const sent = Buffer.from(hello.proof, 'base64url');
  const proof = proofOf(key, role, context, hello);
  return sent.length === proof.length && timingSafeEqual(sent, proof);
}

function proofOf(key: Buffer, role: Role, context: string, said: Omit<Hello, 'proof'>): Buffer {
  const { layout, node, incarnation, logId, version, nonce } = said;
  const covered = JSON.stringify([role, context, layout, node, incarnation, logId, version, nonce]);
  return createHmac('sha256', key).update(covered).digest();
}

function read<T>(frame: Uint8Array, schema: { check(value: unknown): value is T }): T {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(frame).toString());
  } catch {
    throw new HandshakeRefused('format');
  }
  if (!schema.check(value)) throw new HandshakeRefused('format');
  return value;
}
