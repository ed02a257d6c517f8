import { typeOfName } from '../../compile/casts.ts';
import { type CallSite, argumentNode } from '../../compile/functions/call_site.ts';
import { parseExpression } from '../../parser/parse.ts';
import type { Type } from '../../types.ts';

/** The type that a string literal names, such as 'Array(String)'. @throws DialectError */
export function typeFromLiteral(site: CallSite, index: number): Type {
  const name = site.values[index]?.constant;
  const node = argumentNode(site, index);
  const wrong = (): Error =>
    site.statement.error(`The type must be a string literal such as 'Int64' or 'Array(String)'.`, node);
  if (typeof name !== 'string') throw wrong();
  const cast = parsed(`CAST(NULL AS ${name})`);
  if (cast?.kind !== 'cast' || cast.operand.kind !== 'null') throw wrong();
  // Spans of this text are not positions in the query.
  return typeOfName({ ...cast.type, ...{ start: node.start, end: node.end } }, site.statement);
}

function parsed(text: string): ReturnType<typeof parseExpression> | null {
  try {
    return parseExpression(text);
  } catch {
    return null;
  }
}
