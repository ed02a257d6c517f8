const list = (text: string): readonly string[] => text.trim().split(/\s+/);

/** Words without meaning if no rule matches them. */
const fillerWords: ReadonlySet<string> = new Set(
  list(`
    a about all go went so far either display happen occur kinds types raw use via come coming often asc desc second seconds also am an and any are as at be been being by can chart could count counts data did do does
    done draft each event events every find for from fetch get give graph had happened has have having how i in is it
    its just let like list made make many me much my named names need number numbers of on only our out over per please
    plot query report result results return select show sort sorted sql statistics stats table tell than that the
    their them there these they this times to total totals up us using value values want was we were what when
    where which who whose will with work write would you your respectively descending visualize triggered fired
    performed occurred occurrences property properties including include breakdown compare comparison called
    group grouped split broken down see
  `),
);

/** Words of the rules that change the meaning of a prompt and therefore must not stay unmatched. */
export const bindingWords: ReadonlySet<string> = new Set(
  list(`
    above active fewer converts yet throughout overall if filtered filter known differs includes begins beginning
    higher bigger longer exceeding lower summed bucketed long greatest important commonest biggest rarest segmented divided
    created funnels limit limited shorter rows actors after ago average avg before below between bottom bounce but common compared contain
    containing contains conversion conversions convert converted current customer customers daily date day days
    different distinct duration ends ended empty equal equals except exactly exceeds excluding exist exists
    fewest first frequent funnel greater highest hour hourly hours include larger largest last latest least length
    less longest lowest max maximum mean median min minimum minute minutes missing month monthly months more most
    never new newest no not null oldest or other people percent percentage percentile person persons popular
    previous past quarter quarterly quarters rate ratio recent recently same session sessions set share shortest
    since smaller smallest started starting starts sum then time today top trend trends under unique unknown
    unset until used user users versus visitor visitors vs wau dau mau week weekday weekdays weekly weeks
    without year yearly years yesterday january february march april may june july august september october
    november december least once ever into within during across through ends ending later earlier ordered order
    growth retention p90 p95 p99 against made
  `),
);

/** Whether a word belongs to the rules; it is then a name only in quotes. */
export const isGrammarWord = (word: string): boolean => fillerWords.has(word) || bindingWords.has(word);
