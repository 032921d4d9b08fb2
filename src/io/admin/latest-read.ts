/** Reads a value again whenever it may have changed. A result that a later read has overtaken is dropped. */
export class LatestRead<Value> {
  readonly #read: () => Value | Promise<Value>;
  readonly #apply: (value: Value) => void;
  #begun = 0;
  #applied = 0;

  constructor(read: () => Value | Promise<Value>, apply: (value: Value) => void) {
    this.#read = read;
    this.#apply = apply;
  }

  /** Applied when it returns if the value is there at once. Rejects as the read does. */
  async run(): Promise<void> {
    this.#begun += 1;
    const own = this.#begun;
    const reading = this.#read();
    const value = reading instanceof Promise ? await reading : reading;
    if (own < this.#applied) return;
    this.#applied = own;
    this.#apply(value);
  }
}
