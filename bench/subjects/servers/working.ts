/** A process that does one piece of work for each message of its parent, and ends with it. */

/** Answers each order with one message; an order that fails ends the process with 1 and its reason. */
export function work<Order>(name: string, answer: (order: Order) => unknown): void {
  process.on('message', async (order: Order) => {
    try {
      process.send?.(await answer(order));
    } catch (error) {
      process.stderr.write(`${name}: ${String(error)}\n`);
      process.exit(1);
    }
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ url: name });
}
