/** A tree without the places of its nodes, to compare what two texts mean. */
export function withoutPlaces(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withoutPlaces);
  if (typeof node !== 'object' || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => name !== 'start' && name !== 'end')
      .map(([name, member]) => [name, withoutPlaces(member)]),
  );
}
