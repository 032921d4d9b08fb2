/** A promise and its `resolve`, as `Promise.withResolvers` gives them, which Node 20 has not. */
export function pending<Value = void>() {
  let resolve: (value: Value) => void = () => undefined;
  const promise = new Promise<Value>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
