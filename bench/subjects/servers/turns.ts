/** The actor runtime alone in a process: `node turns.js [CHECKOUT]` measures rounds of turns on command. */
import { loadRuntime } from '../runtime.ts';
import { rawPuts, type TurnRound, type TurnRoundOptions, turnsOf } from '../turn.ts';

export interface TurnOrder extends TurnRoundOptions {
  readonly kind: 'durable' | 'volatile' | 'raw';
}

const [checkout] = process.argv.slice(2);
const { durableTurns, volatileTurns } = turnsOf(await loadRuntime(checkout));
const ROUNDS: Record<TurnOrder['kind'], (options: TurnRoundOptions) => Promise<TurnRound>> = {
  durable: durableTurns,
  volatile: volatileTurns,
  raw: rawPuts,
};

process.on('message', ({ kind, ...options }: TurnOrder) => {
  ROUNDS[kind](options).then(
    (round) => process.send?.(round),
    (error: unknown) => {
      process.stderr.write(`turns: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: 'turns' });
