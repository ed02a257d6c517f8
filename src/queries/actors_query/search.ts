import type { Expression } from '../../dialect/ast.ts';
import { expressionOf } from '../../dialect/build.ts';
import { personsName, type ActorsFrom } from './actors_source.ts';

/** Who has a text in e-mail, name, id or any distinct id, whatever its case; null for no text. */
export function searchCondition(search: string | null | undefined, { id }: ActorsFrom): Expression | null {
  const text = search?.trim() ?? '';
  if (text === '') return null;
  const pattern = { value: `%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%` };
  return expressionOf(
    `${personsName}.properties.email ilike {pattern} or ${personsName}.properties.name ilike {pattern}
      or toString({id}) ilike {pattern}
      or {id} in (select person_id from person_distinct_ids where distinct_id ilike {pattern})`,
    { pattern, id },
  );
}
