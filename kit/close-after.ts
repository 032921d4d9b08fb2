/** Servers, clients and fixtures of one test end with it. */

interface Teardown {
  teardown(end: () => unknown): unknown;
}

export function closeAfter<Each extends { close(): unknown }>(t: Teardown, each: Each): Each {
  t.teardown(() => each.close());
  return each;
}

export function stopAfter<Each extends { stop(): unknown }>(t: Teardown, each: Each): Each {
  t.teardown(() => each.stop());
  return each;
}
