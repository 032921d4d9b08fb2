/** Counts what the authorization server did, for the metrics. */

interface ConnectReadings {
  readonly consents: Readonly<Record<'allowed' | 'refused', number>>;
  readonly tokens: Readonly<Record<TokenOutcome, number>>;
  readonly registrations: number;
}

type TokenOutcome = 'opened' | 'refreshed' | 'refused';

export class ConnectCounters {
  readonly #consents = { allowed: 0, refused: 0 };
  readonly #tokens = { opened: 0, refreshed: 0, refused: 0 };
  #registrations = 0;

  consent(outcome: 'allowed' | 'refused'): void {
    this.#consents[outcome] += 1;
  }

  token(outcome: TokenOutcome): void {
    this.#tokens[outcome] += 1;
  }

  registered(): void {
    this.#registrations += 1;
  }

  readings(): ConnectReadings {
    return {
      consents: { ...this.#consents },
      tokens: { ...this.#tokens },
      registrations: this.#registrations,
    };
  }
}
