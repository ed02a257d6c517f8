import type { Expression } from '../../dialect/ast.ts';
import type { ActorsFrom } from './actors_source.ts';

/** The condition that a name or id contains a string, ignoring case; null for an empty string. */
export function searchCondition(
  search: string | null | undefined,
  { kind, id }: ActorsFrom,
): Expression | null {
  const text = search?.trim() ?? '';
  return text === '' ? null : kind.search(`%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`, id);
}
