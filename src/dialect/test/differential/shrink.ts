import { childrenOf, type Node, type Query } from '../../ast.ts';
import { parseQuery } from '../../parser/queries.ts';
import { printQuery } from '../../print.ts';
import type { Data } from './tables.ts';

/** Smaller variants of a query, the smallest first. */
export function smallerQueries(text: string): readonly string[] {
  const texts = variantsOf(parseQuery(text)).flatMap((query) => {
    try {
      const smaller = printQuery(query as Query);
      parseQuery(smaller);
      return [smaller];
    } catch {
      // A node where none of its kind can be, or a missing part.
      return [];
    }
  });
  return [...new Set(texts)].filter((one) => one.length < text.length).sort((a, b) => a.length - b.length);
}

/** Variants of a node: one of its descendants, or itself with one part left out or made smaller. */
function variantsOf(node: Node): readonly Node[] {
  const replacements = childrenOf(node).flatMap((child) => [child, ...childrenOf(child)]);
  const parts = Object.entries(node).flatMap(([name, field]: readonly [string, unknown]): readonly Node[] => {
    const withField = (value: unknown): Node => ({ ...node, [name]: value });
    if (Array.isArray(field))
      return field.flatMap((item: unknown, index) => [
        withField(field.toSpliced(index, 1)),
        ...(isNode(item) ? variantsOf(item).map((smaller) => withField(field.with(index, smaller))) : []),
      ]);
    if (isNode(field)) return [withField(null), ...variantsOf(field).map(withField)];
    return field === true ? [withField(false)] : [];
  });
  return [...replacements, ...parts];
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'kind' in value && 'start' in value;

/** Variants of the rows: a table without its rows, or without one of them. */
export function smallerData(data: Data): readonly Data[] {
  return [...data].flatMap(([table, rows]) => {
    const withRows = (kept: typeof rows): Data => new Map([...data, [table, kept]]);
    if (rows.length === 0) return [];
    return [withRows([]), ...rows.map((_, index) => withRows(rows.toSpliced(index, 1)))];
  });
}
