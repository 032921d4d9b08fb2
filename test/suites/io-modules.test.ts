/** The suite of that name: runner/table.ts lists its files. */
import { runSuite } from './runner/run.ts';

await runSuite('io-modules');
