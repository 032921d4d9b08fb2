/** The kill -9 loops of the program, each with the clients that keep it busy. */
import { runChunkKillLoop, runManyChunksLoop } from './chunk-kill-loop.ts';
import { runDraftKillLoop } from './draft-kill-loop.ts';
import { runKillLoop } from './kill-loop.ts';

export const KILL_LOOPS = {
  accounts: { run: runKillLoop, clients: 4 },
  uploads: { run: runChunkKillLoop, clients: 6 },
  chunks: { run: runManyChunksLoop, clients: 6 },
  drafts: { run: runDraftKillLoop, clients: 3 },
} as const;
