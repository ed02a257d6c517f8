import { parse } from 'libpg-query';

/** The functions that a statement calls, according to PostgreSQL's parser. */
export async function functionsOf(sql: string): Promise<readonly string[]> {
  const found = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if ('FuncCall' in node) {
      const { funcname } = node.FuncCall as { readonly funcname: readonly FunctionName[] };
      found.add(funcname.map(({ String: name }) => name.sval).join('.'));
    }
    for (const inner of Object.values(node)) visit(inner);
  };
  visit(await parse(sql));
  return [...found];
}

interface FunctionName {
  readonly String: { readonly sval: string };
}
