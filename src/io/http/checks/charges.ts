/** Charges one request to its limits and keeps the quota that its `X-RateLimit` header shows. */
import type { Limiter } from '../../../actors/limits/limiter.ts';
import type { CallerAddress } from '../../../actors/limits/limiter-keys.ts';
import { errorRow, GatewayError } from '../../../domain/errors.ts';
import type { Holder } from '../../../domain/limits/holders.ts';
import { type QuotaResult, tightest } from '../../../domain/limits/quotas.ts';
import type { RequestLimiter } from '../table/route.ts';

export class RequestCharges implements RequestLimiter, CallerAddress {
  /** The tightest quota; undefined when nothing was charged. */
  quotaResult: QuotaResult | undefined;
  readonly address: string;
  readonly port: number | undefined;
  readonly forwarded: boolean;
  readonly #limiter: Limiter;
  readonly #nowMs: number;

  constructor(
    limiter: Limiter,
    address: string,
    port: number | undefined,
    forwarded: boolean,
    nowMs: number,
  ) {
    this.#limiter = limiter;
    this.address = address;
    this.port = port;
    this.forwarded = forwarded;
    this.#nowMs = nowMs;
  }

  chargeAnonymous(cost: number): void {
    this.#applyQuota(this.#limiter.chargeConnection(this, cost, this.#nowMs));
    this.#applyQuota(this.#limiter.chargeAddress(this.address, cost, this.#nowMs));
  }

  /** The browser sends it, not the page: only the address is charged. Throws `AccessRateLimit`. */
  chargePreflight(): void {
    this.#limiter.keepOpen(this, this.#nowMs);
    this.#applyQuota(this.#limiter.chargeAddress(this.address, 1, this.#nowMs));
  }

  /** Once the budget of unknown keys is spent, a login attempt is refused before its key is looked up. */
  chargeKey(scope: 'p' | 'm', publicKey: string, cost: number): void {
    if (scope === 'm') this.checkUnknownKeys();
    this.#applyQuota(this.#limiter.chargeKey(scope, publicKey, this.address, cost, this.#nowMs));
  }

  async chargeProvableKey<T>(
    scope: 'p' | 'm',
    publicKey: string,
    login: (crowded: boolean) => Promise<T>,
  ): Promise<T> {
    if (scope === 'm') this.checkUnknownKeys();
    const quotaResult = this.#limiter.chargeKey(scope, publicKey, this.address, 1, this.#nowMs, true);
    this.#applyQuota(quotaResult);
    if (quotaResult?.needsProof !== true) return login(false);
    let result: T;
    try {
      result = await login(true);
    } catch (error) {
      // An overload or a failure does not decide about the proof.
      if (error instanceof GatewayError && errorRow(error.row).status < 500)
        this.#applyQuota(this.#limiter.settleProof(quotaResult, false));
      throw error;
    }
    this.#limiter.settleProof(quotaResult, true);
    return result;
  }

  chargeSignUp(): () => void {
    const { signUps } = this.#limiter.budgets;
    const quotaResult = signUps.charge(this.address, this.#nowMs);
    if (quotaResult?.allowed === false)
      this.#applyQuota(quotaResult, 'too many accounts of one network today');
    return () => quotaResult !== undefined && signUps.giveBack(this.address, this.#nowMs);
  }

  noteSession(quotaResult: QuotaResult | undefined): void {
    this.#limiter.keepOpen(this, this.#nowMs);
    if (quotaResult !== undefined) this.#applyQuota(this.#limiter.weigh(quotaResult));
  }

  chargeCode(hash: string): void {
    const quotaResult = this.#limiter.chargeKey('p', hash, this.address, 1, this.#nowMs);
    this.#applyQuota(quotaResult === undefined ? undefined : { ...quotaResult, scope: 'i' });
  }

  noteRefusal({ row, scope, retryAfterSeconds = 1 }: GatewayError, holder: Holder): void {
    if (row !== 'AccessRateLimit' || this.quotaResult?.allowed === false) return;
    const named = scope ?? (holder.user === undefined ? 'i' : 's');
    const quota = this.#limiter.quotaOf(named, this.#nowMs);
    const resetSeconds = retryAfterSeconds;
    this.quotaResult = { allowed: false, scope: named, quota, remaining: 0, resetSeconds };
  }

  noteOwn(quotaResult: QuotaResult, detail: string): void {
    this.#applyQuota(quotaResult, detail);
  }

  #applyQuota(quotaResult: QuotaResult | undefined, detail?: string): void {
    this.quotaResult = tightest(this.quotaResult, quotaResult);
    if (quotaResult?.allowed === false) {
      throw new GatewayError('AccessRateLimit', detail, quotaResult.resetSeconds);
    }
  }

  chargeUnknownKey(): void {
    this.#refuseSpent(this.#limiter.budgets.unknownKeys.charge(this.address, this.#nowMs));
  }

  checkUnknownKeys(): void {
    this.#refuseSpent(this.#limiter.budgets.unknownKeys.check(this.address, this.#nowMs));
  }

  /** A budget is no window scope: the header shows it only when it refuses. */
  #refuseSpent(quotaResult: QuotaResult | undefined): void {
    if (quotaResult?.allowed === false) this.#applyQuota(quotaResult);
  }
}
