/** Loaded into a gateway with --require: the monotonic clock of its start runs a hundred times as fast. */
const SPEED = 100;
const now = performance.now.bind(performance);
Object.defineProperty(performance, 'now', { value: () => now() * SPEED });
