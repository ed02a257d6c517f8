import { typeOfName } from '../../compile/casts.ts';
import { type CallSite, nodeAt } from '../../compile/functions/site.ts';
import { parseExpression } from '../../parser/parse.ts';
import type { Type } from '../../types.ts';

/** The type that a constant text names, such as 'Array(String)'. @throws DialectError */
export function typeOfText(site: CallSite, place: number): Type {
  const name = site.values[place]?.constant;
  const node = nodeAt(site, place);
  const wrong = (): Error =>
    site.statement.error(`The type is a text that is written out, such as 'Int64' or 'Array(String)'.`, node);
  if (typeof name !== 'string') throw wrong();
  const cast = parsed(`CAST(NULL AS ${name})`);
  if (cast?.kind !== 'cast' || cast.operand.kind !== 'null') throw wrong();
  // The places of this text are not those of the query.
  return typeOfName({ ...cast.type, ...{ start: node.start, end: node.end } }, site.statement);
}

function parsed(text: string): ReturnType<typeof parseExpression> | null {
  try {
    return parseExpression(text);
  } catch {
    return null;
  }
}
