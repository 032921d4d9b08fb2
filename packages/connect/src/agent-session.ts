/** The session of a key: one login at a time, renewed before it ends, and no flood of logins that are refused. */
import type { AgentKey } from './agent-key.ts';
import { given, type LoginOptions, LoginRefused, login, type McpSession } from './login.ts';
import { SYSTEM } from './send.ts';

/** A session is renewed this long before its end, or a tenth of its life if that is less. */
const RENEWAL_MS = 5 * 60_000;
const RENEWAL_SHARE = 0.1;
/** A refused login is not tried again within this time: unknown keys have a budget at the gateway. */
const REFUSAL_MS = 5_000;

export interface SessionOptions extends LoginOptions {
  readonly key: AgentKey;
  /** Told of each login. */
  readonly onLogin?: (session: McpSession) => void;
}

interface Held {
  readonly token: string;
  readonly renewAtMs: number;
  readonly endsAtMs: number;
}

export class AgentSession {
  readonly #options: SessionOptions;
  readonly #now: () => number;
  #held: Held | undefined;
  #login: Promise<string> | undefined;
  #refused: { readonly error: LoginRefused; readonly untilMs: number } | undefined;
  #clockOffsetMs = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#now = given(options).now ?? SYSTEM.now;
  }

  /** A bearer that lives. Near its end a new one is fetched beside it. Throws `LoginRefused`. */
  async token(): Promise<string> {
    const nowMs = this.#now();
    const held = this.#held;
    if (held === undefined || nowMs >= held.endsAtMs) return this.#logIn();
    // A failure of this login shows when the old session has ended.
    if (nowMs >= held.renewAtMs) this.#logIn().catch(() => undefined);
    return held.token;
  }

  /** The gateway does not know this bearer. A newer one stays. */
  forget(token: string): void {
    if (this.#held?.token === token) this.#held = undefined;
  }

  #logIn(): Promise<string> {
    const refused = this.#refused;
    if (refused !== undefined && this.#now() < refused.untilMs) return Promise.reject(refused.error);
    this.#login ??= this.#open().finally(() => {
      this.#login = undefined;
    });
    return this.#login;
  }

  async #open(): Promise<string> {
    try {
      const session = await login(this.#options, this.#clockOffsetMs);
      const { sessionId: token, livesMs, clockOffsetMs } = session;
      const nowMs = this.#now();
      const renewalMs = Math.min(RENEWAL_MS, livesMs * RENEWAL_SHARE);
      this.#clockOffsetMs = clockOffsetMs;
      this.#held = { token, endsAtMs: nowMs + livesMs, renewAtMs: nowMs + livesMs - renewalMs };
      this.#refused = undefined;
      this.#options.onLogin?.(session);
      return token;
    } catch (error) {
      if (error instanceof LoginRefused) this.#refused = { error, untilMs: this.#now() + REFUSAL_MS };
      throw error;
    }
  }
}
