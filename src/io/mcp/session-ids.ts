/**
 * Ids of /mcp sessions. Nothing is stored of a live one: it carries a MAC over the account that initialized, so that no
 * other account ends it, and over what the client said that it can. Ended ones are remembered; a request with one gets 404.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';
import { decodeBase64url } from '../../domain/ids.ts';
import type { SessionContext } from '../../domain/sessions.ts';

const PURPOSE = 'mcp-session';
const KEY_BYTES = 32;
const RANDOM_BYTES = 15;
const MAC_BYTES = 15;
/** Suffix for a client that asks its person by an address (`elicitation.url`). */
const ASKS_BY_URL = ' url';
/** Ended ids kept; the oldest is dropped beyond this number. */
const ENDED_MAX = 10_000;

/** Session of the caller that initializes or ends; undefined without one. */
type Holder = Pick<SessionContext, 'userId' | 'proven'> | undefined;

export class McpSessionIds {
  readonly #key: KeyObject;

  /** The key is that of the journal, so that all nodes of a cluster read the ids of each. */
  constructor(cipher: { deriveKey(purpose: string, lengthBytes: number): Buffer }) {
    this.#key = createSecretKey(cipher.deriveKey(PURPOSE, KEY_BYTES));
  }

  /** 40 characters. `asksByUrl`: the client declared `elicitation.url`. */
  issue(caller: Holder, asksByUrl = false): string {
    const random = randomBytes(RANDOM_BYTES);
    const mac = this.#mac(random, caller, asksByUrl ? ASKS_BY_URL : '');
    return Buffer.concat([random, mac]).toString('base64url');
  }

  /**
   * True if the id was issued to the account of this caller. An unproven login, for which a public key is enough, ends
   * none of a proven one. An id that was issued without a session is ended by any caller.
   */
  mayEnd(id: string, caller: Holder): boolean {
    return this.#isIssued(id, caller, '') || this.asksByUrl(id, caller);
  }

  /** True if the client of this caller declared `elicitation.url` when it got the id. */
  asksByUrl(id: string, caller: Holder): boolean {
    return this.#isIssued(id, caller, ASKS_BY_URL);
  }

  #isIssued(id: string, caller: Holder, added: string): boolean {
    const bytes = decodeBase64url(id, RANDOM_BYTES + MAC_BYTES);
    if (bytes === undefined) return false;
    const [random, mac] = [bytes.subarray(0, RANDOM_BYTES), bytes.subarray(RANDOM_BYTES)];
    const owners = caller === undefined ? [undefined] : [undefined, caller, { ...caller, proven: false }];
    return owners.some((owner) => timingSafeEqual(mac, this.#mac(random, owner, added)));
  }

  #mac(random: Uint8Array, owner: Holder, added: string): Buffer {
    const hmac = createHmac('sha256', this.#key).update(random);
    if (owner !== undefined) hmac.update(`${owner.userId} ${owner.proven}`);
    return hmac.update(added).digest().subarray(0, MAC_BYTES);
  }
}

export class EndedSessions {
  readonly #ended = new Set<string>();

  end(id: string): void {
    if (this.#ended.size >= ENDED_MAX) {
      const oldest = this.#ended.values().next();
      if (oldest.done !== true) this.#ended.delete(oldest.value);
    }
    this.#ended.add(id);
  }

  has(id: string | undefined): boolean {
    return id !== undefined && this.#ended.has(id);
  }

  get size(): number {
    return this.#ended.size;
  }
}
