/** The functions that shared/reference/query.md §7.7 lists, without those for features of the other product. */
export const referenceFunctions: readonly string[] =
  `count countIf countDistinct countDistinctIf sum sumIf avg avgIf min minIf max maxIf
any anyIf anyLast anyLastIf anyHeavy argMin argMinIf argMax argMaxIf uniq uniqIf uniqExact
uniqExactIf uniqHLL12 groupArray groupArrayIf groupUniqArray groupUniqArrayIf groupArraySample groupArrayMovingAvg groupBitAnd groupBitOr groupBitXor median
medianIf medianExact quantile quantileIf quantiles stddevPop stddevSamp varPop varSamp covarPop covarSamp corr
skewPop kurtPop topK avgWeighted sumMap minMap maxMap deltaSum simpleLinearRegression windowFunnel array_agg string_agg
json_agg every row_number rank dense_rank lag lead lagInFrame leadInFrame first_value last_value nth_value
plus minus multiply divide intDiv modulo negate abs gcd lcm max2 min2
least greatest floor ceil round trunc roundBankers exp log ln log2 log10
sqrt cbrt pow sin cos tan atan2 hypot sign pi e factorial
equals notEquals less greater lessOrEquals greaterOrEquals in notIn like ilike notLike notILike
and or xor not if multiIf isNull isNotNull coalesce ifNull nullIf assumeNotNull
toNullable isNaN isFinite ifNotFinite transform toInt toIntOrZero toFloat toFloatOrZero toFloatOrDefault toDecimal toString
toBool toUUID toJSONString toTypeName parseDateTime parseDateTimeBestEffort hex unhex cityHash64 now today yesterday
current_date toDate toDateTime toDateTime64 toTimeZone toYear toQuarter toMonth toDayOfYear toDayOfMonth toDayOfWeek toHour
toMinute toSecond toUnixTimestamp fromUnixTimestamp toStartOfYear toStartOfQuarter toStartOfMonth toStartOfWeek toStartOfDay toStartOfHour toStartOfMinute toStartOfSecond
toStartOfFiveMinutes toStartOfTenMinutes toStartOfFifteenMinutes toStartOfInterval toMonday toLastDayOfMonth toISOWeek toISOYear toWeek toYearWeek toYYYYMM toYYYYMMDD
dateDiff date_diff age dateAdd dateSub dateTrunc date_trunc date_part addSeconds addMinutes addHours addDays
addWeeks addMonths addQuarters addYears subtractSeconds subtractMinutes subtractHours subtractDays subtractWeeks subtractMonths subtractQuarters subtractYears
timeSlot formatDateTime dateName monthName toIntervalSecond toIntervalMinute toIntervalHour toIntervalDay toIntervalWeek toIntervalMonth toIntervalQuarter toIntervalYear
make_date make_timestamp make_interval date_bin to_char to_timestamp length lengthUTF8 lower upper concat concatWithSeparator
substring left right reverse repeat trim trimLeft trimRight leftPad rightPad startsWith endsWith
empty notEmpty format initcap ascii base64Encode base64Decode position positionCaseInsensitive locate match multiMatchAny
extract extractAll extractGroups regexpExtract countSubstrings countMatches hasToken replaceOne replaceAll replaceRegexpOne replaceRegexpAll translate
splitByChar splitByString splitByRegexp splitByWhitespace alphaTokens ngrams md5 protocol domain domainWithoutWWW topLevelDomain cutToFirstSignificantSubdomain
port path pathFull queryString fragment extractURLParameter extractURLParameters cutQueryString cutQueryStringAndFragment cutURLParameter decodeURLComponent encodeURLComponent
array range has hasAll hasAny indexOf arrayConcat arrayElement arrayPushBack arrayPopBack arraySlice arraySort
arrayReverseSort arrayReverse arrayUniq arrayDistinct arrayJoin arrayMap arrayFilter arrayExists arrayAll arrayFirst arrayLast arrayFirstIndex
arrayCount countEqual arraySum arrayAvg arrayMin arrayMax arrayProduct arrayCumSum arrayDifference arrayIntersect arrayFlatten arrayCompact
arrayZip arrayFold arrayFill arrayWithConstant arrayEnumerate arrayStringConcat tuple tupleElement untuple map mapFromArrays mapKeys
mapValues mapContains JSONHas JSONLength JSONType JSONExtract JSONExtractString JSONExtractInt JSONExtractUInt JSONExtractFloat JSONExtractBool JSONExtractRaw
JSONExtractArrayRaw JSONExtractKeys JSONExtractKeysAndValuesRaw JSON_VALUE isValidJSON JSONArrayLength bitAnd bitOr bitXor bitNot bitShiftLeft bitShiftRight
bitTest bitCount greatCircleDistance pointInPolygon formatReadableSize formatReadableQuantity formatReadableTimeDelta bar languageCodeToName`.split(
    /\s+/,
  );
