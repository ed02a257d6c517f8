/** A tree without spans, to compare trees of different texts. */
export function withoutSpans(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutSpans);
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => name !== 'start' && name !== 'end')
      .map(([name, field]) => [name, withoutSpans(field)]),
  );
}
