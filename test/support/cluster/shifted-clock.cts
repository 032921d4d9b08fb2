/** Loaded into a gateway with --require: its wall clock is ahead, and each SIGUSR2 is the next step. */
const SHIFTS_MS = [2_000, 0, 10_000, 0];
const now = Date.now.bind(Date);
let step = 0;
Date.now = () => now() + (SHIFTS_MS[step] ?? 0);
process.on('SIGUSR2', () => {
  step += 1;
});
