/** The actor runtime alone in a process: `node turns.js [CHECKOUT]` measures rounds of turns on command. */
import { loadRuntime } from '../runtime.ts';
import { type ClosedLoop, rawPuts, turnsOf } from '../turn.ts';
import { work } from './working.ts';

const [checkout] = process.argv.slice(2);
const { durableTurns, volatileTurns } = turnsOf(await loadRuntime(checkout));
const ROUNDS = { durable: durableTurns, volatile: volatileTurns, raw: rawPuts };

work<ClosedLoop & { readonly kind: keyof typeof ROUNDS }>('turns', ({ kind, ...loop }) => ROUNDS[kind](loop));
