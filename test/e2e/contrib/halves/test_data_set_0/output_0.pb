
B	half_gemmJ0ϊΒκ°2Ό¦=1@@FxGG½›Ek;jΌτΖ–ΎGIΕ‡F―Ε²ΗΛ"ΕΆΑ	I