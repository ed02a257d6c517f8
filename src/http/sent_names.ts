/** The names by which requests have sent fields that their bodies now have by others, by the body. */
const namesOf = new WeakMap<object, ReadonlyMap<string, string>>();

/**
 * Keeps how a request has called fields of its body, for its errors.
 * @param names what it called each, by the path of the field in the body, both joined by `__`
 */
export function keepSentNames(body: object, names: ReadonlyMap<string, string>): void {
  namesOf.set(body, names);
}

/** The `attr` of an error as the request has called the field. */
export function attrAsSent(body: unknown, attr: string | null): string | null {
  const names = typeof body === 'object' && body !== null ? namesOf.get(body) : undefined;
  for (const [name, sent] of names ?? [])
    if (attr === name || attr?.startsWith(`${name}__`) === true) return sent + attr.slice(name.length);
  return attr;
}
