import type { Expression } from '../../dialect/ast.ts';
import type { ActorsFrom } from './actors_source.ts';

/** Whose names or ids have a text in them, whatever its case; null for no text. */
export function searchCondition(
  search: string | null | undefined,
  { kind, id }: ActorsFrom,
): Expression | null {
  const text = search?.trim() ?? '';
  return text === '' ? null : kind.search(`%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`, id);
}
