/** Loaded into a gateway with --require: its wall clock is two seconds ahead until SIGUSR2. */
const SHIFT_MS = 2_000;
const now = Date.now.bind(Date);
let shiftMs = SHIFT_MS;
Date.now = () => now() + shiftMs;
process.on('SIGUSR2', () => {
  shiftMs = 0;
});
