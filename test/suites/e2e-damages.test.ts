/** The suite of that name: table.ts lists its files. */
import { runSuite } from './run.ts';

await runSuite('e2e-damages');
