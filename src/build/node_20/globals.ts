// What exportd uses of the language and Node 20 and 22 lack. esbuild puts it in front of every program of a build.

/** Adds functions that are missing. Types say that none is. */
const addMissing = (target: object, functions: Readonly<Record<string, unknown>>): void => {
  for (const [name, value] of Object.entries(functions))
    if (!(name in target)) Object.defineProperty(target, name, { value, configurable: true, writable: true });
};

addMissing(Error, {
  isError: (value: unknown) =>
    value instanceof Error || Object.prototype.toString.call(value) === '[object Error]',
});

addMissing(Promise, {
  withResolvers: <Value>() => {
    let resolve!: (value: Value | PromiseLike<Value>) => void;
    let reject!: (reason?: unknown) => void;
    const promise = new Promise<Value>((...functions) => {
      [resolve, reject] = functions;
    });
    return { promise, resolve, reject };
  },
});

function groupIntoMap<Key, Value>(
  values: Iterable<Value>,
  keyOf: (value: Value, index: number) => Key,
): Map<Key, Value[]> {
  const groups = new Map<Key, Value[]>();
  let index = 0;
  for (const value of values) {
    const key = keyOf(value, index);
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
    index += 1;
  }
  return groups;
}

addMissing(Map, { groupBy: groupIntoMap });
addMissing(Object, {
  groupBy: <Value>(values: Iterable<Value>, keyOf: (value: Value, index: number) => PropertyKey) =>
    Object.fromEntries(groupIntoMap(values, keyOf)),
});

addMissing(ArrayBuffer.prototype, {
  /** exportd calls it with 0 alone, to release the memory of a buffer. */
  transfer(this: ArrayBuffer) {
    return structuredClone(this, { transfer: [this] }).slice(0, 0);
  },
});
